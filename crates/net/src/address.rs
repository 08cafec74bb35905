//! Addresses of nodes and servers: `tcp://`, `tls://`, `unix://` or `inproc://`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Address of a connection's other end, as a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `tcp://HOST:PORT`
    Tcp {
        /// Host name or IP address; an IPv6 address without its brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// `tls://HOST:PORT`
    Tls {
        /// Host name or IP address, checked against the certificate.
        host: String,
        /// Port.
        port: u16,
    },
    /// `unix:///PATH`
    Unix {
        /// Path of the socket.
        path: PathBuf,
    },
    /// `inproc://NAME`, within one process
    Inproc {
        /// Any name.
        name: String,
    },
}

/// Reasons to reject a text as an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The scheme is missing or unknown.
    #[error("address `{text}` does not start with tcp://, tls://, unix:// or inproc://")]
    Scheme {
        /// The rejected text.
        text: String,
    },
    /// Host or port is missing.
    #[error("address `{text}` needs a host and a port, like tcp://127.0.0.1:7400")]
    HostPort {
        /// The rejected text.
        text: String,
    },
    /// There is nothing after the scheme.
    #[error("address `{text}` has no {what}")]
    Empty {
        /// The rejected text.
        text: String,
        /// The missing part.
        what: &'static str,
    },
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let empty = |what| AddressError::Empty {
            text: text.to_owned(),
            what,
        };
        match text.split_once("://") {
            Some(("tcp", rest)) => {
                let (host, port) = host_port(text, rest)?;
                Ok(Self::Tcp { host, port })
            }
            Some(("tls", rest)) => {
                let (host, port) = host_port(text, rest)?;
                Ok(Self::Tls { host, port })
            }
            Some(("unix", "")) => Err(empty("path")),
            Some(("unix", path)) => Ok(Self::Unix { path: path.into() }),
            Some(("inproc", "")) => Err(empty("name")),
            Some(("inproc", name)) => Ok(Self::Inproc {
                name: name.to_owned(),
            }),
            _ => Err(AddressError::Scheme {
                text: text.to_owned(),
            }),
        }
    }
}

fn host_port(text: &str, rest: &str) -> Result<(String, u16), AddressError> {
    let error = || AddressError::HostPort {
        text: text.to_owned(),
    };
    let (host, port) = rest.rsplit_once(':').ok_or_else(error)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port.parse().map_err(|_| error())?;
    if host.is_empty() {
        Err(error())
    } else {
        Ok((host.to_owned(), port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracket = |host: &str| match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        match self {
            Self::Tcp { host, port } => write!(f, "tcp://{}:{port}", bracket(host)),
            Self::Tls { host, port } => write!(f, "tls://{}:{port}", bracket(host)),
            Self::Unix { path } => write!(f, "unix://{}", path.display()),
            Self::Inproc { name } => write!(f, "inproc://{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_parses_its_own_display() {
        for text in [
            "tcp://127.0.0.1:7400",
            "tls://[::1]:1",
            "unix:///run/t.sock",
            "inproc://x",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_address_is_refused() {
        for text in [
            "",
            "127.0.0.1:1",
            "http://x:1",
            "tcp://x",
            "tcp://:1",
            "tcp://x:99999",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
        assert!(matches!(
            "unix://".parse::<Address>(),
            Err(AddressError::Empty { .. })
        ));
    }
}

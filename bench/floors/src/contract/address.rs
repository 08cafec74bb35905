//! Where a program listens or connects: `127.0.0.1:PORT` or `unix:/path`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// A TCP address or the path of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A numeric address and a port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// The path of a stream socket in the file system.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("a path after `unix:`".into()),
            Some(path) => Ok(Address::Unix(PathBuf::from(path))),
            None => text
                .parse()
                .map(Address::Tcp)
                .map_err(|_| "`127.0.0.1:PORT` or `unix:/path`".into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn an_address_prints_as_it_was_read() {
        for text in ["127.0.0.1:7000", "[::1]:0", "unix:/tmp/socket"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_name_or_an_empty_path_is_no_address() {
        for text in ["localhost:7000", "127.0.0.1", "unix:", ""] {
            assert!(
                text.parse::<Address>().is_err(),
                "{text:?} was taken for an address"
            );
        }
    }
}

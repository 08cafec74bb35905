//! The address of a listener.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// A host, as an address or a name, and a port; port 0 lets the system choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// An address or a name; an IPv6 address without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The error of a text that is not HOST:PORT.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not HOST:PORT, like 127.0.0.1:7400 (0.0.0.0 is every address, port 0 any free one)"
)]
pub struct HostPortError {
    /// The given text.
    pub text: String,
}

impl HostPort {
    /// `port` on the loopback address.
    pub fn loopback(port: u16) -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port,
        }
    }

    /// True if only this machine can reach the address. A name other than `localhost` may resolve
    /// to any address, so it counts as reachable.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
}

impl FromStr for HostPort {
    type Err = HostPortError;

    fn from_str(text: &str) -> Result<Self, HostPortError> {
        let error = || HostPortError {
            text: text.to_owned(),
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let valid = match bracketed {
            Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_host_byte),
        };
        let port = port.parse().map_err(|_| error())?;
        if !valid {
            return Err(error());
        }
        Ok(Self {
            host: bracketed.unwrap_or(host).to_owned(),
            port,
        })
    }
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_".contains(&byte)
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_listener_addresses_parse_back() {
        for text in [
            "127.0.0.1:7400",
            "[::1]:0",
            "node-1.example.org:65535",
            "localhost:1",
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn address_without_host_or_port_is_refused() {
        for text in [
            "",
            "7400",
            ":7400",
            "*:7400",
            "127.0.0.1",
            "x:99999",
            "::1:7400",
            "[x]:1",
        ] {
            assert!(text.parse::<HostPort>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_local_addresses_are_loopback() {
        for text in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "localhost:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(text.parse::<HostPort>().unwrap().is_loopback(), "{text}");
        }
        for text in [
            "0.0.0.0:1",
            "[::]:1",
            "10.0.0.1:1",
            "example.org:1",
            "localhost.evil.org:1",
        ] {
            assert!(!text.parse::<HostPort>().unwrap().is_loopback(), "{text}");
        }
    }
}

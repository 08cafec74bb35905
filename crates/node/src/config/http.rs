//! Options of the HTTP listener.

use std::time::Duration;

use super::{HostPort, Value};

options! {
    /// The HTTP listener: conversations, topics and quotas for HTTP clients and browsers, health,
    /// metrics and administration.
    http, "HTTP listener";

    /// Address to listen on; `none` disables the listener.
    "http.listen" => listen: Option<HostPort> = Some(HostPort::loopback(7401));

    /// Host names by which clients address this node, separated by commas, for example the name of
    /// its container or service. `*.example.com` is every name below example.com. IP addresses,
    /// `localhost` and the names of the TLS certificate are always accepted, and every name is
    /// accepted while tokens are required.
    "http.hosts" => hosts: HostNames = HostNames::default();

    /// Origins of web pages that may use this node, separated by commas, such as
    /// `https://app.example.com` or `http://localhost:3000`. Requests from pages of any other
    /// origin are refused.
    "http.origins" => origins: Origins = Origins::default();

    /// Maximum number of open connections, without event streams and WebSockets. A further
    /// connection replaces an idle one, or is answered with 503 if none is idle.
    "http.connections_max" => connections_max: u32 = 20_000, from "1" to "1000000";

    /// Maximum number of open event streams and WebSockets; further ones are answered with 503.
    "http.streams_max" => streams_max: u32 = 10_000, from "1" to "1000000";

    /// Time for which a client may leave written data unread before its connection is closed.
    "http.write_timeout" => write_timeout: Duration = Duration::from_secs(30), from "10ms" to "1h";
}

/// Host names in lower case, without ports; a leading `*.` stands for any labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames(pub Vec<String>);

/// Origins in lower case as browsers write them: without a path and without a default port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(pub Vec<String>);

impl Value for HostNames {
    const FORM: &'static str = "NAME,...";

    fn parse(text: &str) -> Result<Self, String> {
        entries(text)
            .map(host_name)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn print(&self) -> String {
        self.0.join(",")
    }
}

impl Value for Origins {
    const FORM: &'static str = "ORIGIN,...";

    fn parse(text: &str) -> Result<Self, String> {
        entries(text)
            .map(origin)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn print(&self) -> String {
        self.0.join(",")
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

fn host_name(text: &str) -> Result<String, String> {
    match is_name(text.strip_prefix("*.").unwrap_or(text)) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!(
            "`{text}` is not a host name: letters, digits, `-`, `.` and `_`, without a port"
        )),
    }
}

fn origin(text: &str) -> Result<String, String> {
    let form = "an origin is SCHEME://HOST or SCHEME://HOST:PORT, without a path";
    let wrong = || format!("`{text}`: {form}");
    let lower = text.to_ascii_lowercase();
    let (scheme, authority) = lower.split_once("://").ok_or_else(wrong)?;
    let is_scheme_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if scheme.is_empty() || !scheme.bytes().all(is_scheme_byte) {
        return Err(wrong());
    }
    let host_ends = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match authority[host_ends..].find(':') {
        Some(colon) => {
            let (host, port) = authority.split_at(host_ends + colon);
            (host, Some(port[1..].parse::<u16>().map_err(|_| wrong())?))
        }
        None => (authority, None),
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_name(host),
    };
    if !is_host {
        return Err(wrong());
    }
    Ok(match (scheme, port) {
        (_, None) | ("http", Some(80)) | ("https", Some(443)) => format!("{scheme}://{host}"),
        (_, Some(port)) => format!("{scheme}://{host}:{port}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_as_browsers_write_them() {
        let parse = |text: &str| Origins::parse(text).map(|it| it.print());
        for (text, expected) in [
            ("", ""),
            ("http://localhost:3000", "http://localhost:3000"),
            (
                "HTTPS://App.Example.com:443, http://[::1]:80",
                "https://app.example.com,http://[::1]",
            ),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected));
        }
        for text in [
            "null",
            "*",
            "app.example.com",
            "http://",
            "http://a/",
            "http://a:x",
            "http://u@a",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("SCHEME://HOST"), "{error}");
        }
    }

    #[test]
    fn host_names_have_neither_port_nor_path() {
        let parse = |text: &str| HostNames::parse(text).map(|it| it.print());
        assert_eq!(
            parse("Telpher, *.svc.local").as_deref(),
            Ok("telpher,*.svc.local")
        );
        for text in ["telpher:7401", "http://telpher", "*", "a b"] {
            assert!(parse(text).unwrap_err().contains("not a host name"));
        }
    }
}

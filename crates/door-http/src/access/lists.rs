//! Lists of host names and of origins, as they are configured.

use std::fmt;

/// Host names in lower case, without ports; a leading `*.` stands for any labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames(pub Vec<String>);

/// Origins in lower case as browsers write them: without a path and without a default port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(pub Vec<String>);

impl HostNames {
    /// Reads names that are separated by commas. The error is for people and names the wrong one.
    pub fn parse(text: &str) -> Result<Self, String> {
        entries(text)
            .map(host_name)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for HostNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl Origins {
    /// Reads origins that are separated by commas. The error is for people and names the wrong one.
    pub fn parse(text: &str) -> Result<Self, String> {
        entries(text)
            .map(origin)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for Origins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
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
        let parse = |text: &str| Origins::parse(text).map(|it| it.to_string());
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
        let parse = |text: &str| HostNames::parse(text).map(|it| it.to_string());
        assert_eq!(
            parse("Telpher, *.svc.local").as_deref(),
            Ok("telpher,*.svc.local")
        );
        for text in ["telpher:7401", "http://telpher", "*", "a b"] {
            assert!(parse(text).unwrap_err().contains("not a host name"));
        }
    }
}

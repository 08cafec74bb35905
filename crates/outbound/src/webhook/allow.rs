//! `Allowed`: hosts that webhook calls may reach. Without this list, a client that may configure
//! agents could make the node fetch any URL (server-side request forgery).

use std::net::IpAddr;

use hyper::Uri;

/// Hosts that webhook calls may reach.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    patterns: Vec<Pattern>,
    is_loopback: bool,
}

/// Error: an invalid pattern in `webhook.allow`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{pattern}` is not a valid pattern: use [SCHEME://]HOST[:PORT], where HOST may begin with `*.` or be `*`"
)]
pub struct WrongPattern {
    /// The pattern.
    pub pattern: String,
}

/// Pattern `[SCHEME://]HOST[:PORT]`.
#[derive(Clone, Debug)]
struct Pattern {
    scheme: Option<String>,
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug)]
enum Host {
    Any,
    /// Subdomains of this domain.
    Subdomains(String),
    Exact(String),
}

impl Allowed {
    /// Parses comma-separated patterns. `is_loopback` also allows loopback addresses.
    pub fn parse(patterns: &str, is_loopback: bool) -> Result<Self, WrongPattern> {
        let patterns = patterns.split(',').map(str::trim);
        let patterns = patterns.filter(|it| !it.is_empty()).map(|text| {
            Pattern::parse(text).ok_or_else(|| WrongPattern {
                pattern: text.to_owned(),
            })
        });
        Ok(Self {
            patterns: patterns.collect::<Result<_, _>>()?,
            is_loopback,
        })
    }

    /// Parses a URL and checks that calls to it are allowed; the error says why not.
    pub(super) fn check(&self, url: &str) -> Result<Uri, String> {
        let uri: Uri = url
            .parse()
            .map_err(|error| format!("`{url}` is not a valid URL: {error}"))?;
        let default_port = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err(format!("`{url}`: the scheme must be http or https")),
        };
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let has_user = uri.authority().is_some_and(|it| it.as_str().contains('@'));
        if host.is_empty() || has_user {
            return Err(format!(
                "`{url}`: the URL needs a host and must not have a user"
            ));
        }
        let port = uri.port_u16().unwrap_or(default_port);
        let is_here = self.is_loopback && is_loopback(&host);
        let scheme = uri.scheme_str().unwrap_or_default();
        let matches = |pattern: &Pattern| pattern.matches(scheme, &host, port);
        match is_here || self.patterns.iter().any(matches) {
            true => Ok(uri),
            false => Err(format!(
                "calls to `{host}:{port}` are not allowed (`webhook.allow`)"
            )),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme.to_owned()), rest),
            Some(_) => return None,
            None => (None, text.as_str()),
        };
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if is_port(port) => (host, Some(port.parse().ok()?)),
            Some((_, port)) if !port.ends_with(']') => return None,
            _ => (rest, None),
        };
        let is_host = |host: &str| {
            let is_allowed = |it: char| it.is_ascii_alphanumeric() || ".-_[]:".contains(it);
            !host.is_empty() && host.chars().all(is_allowed)
        };
        let host = match host.strip_prefix("*.") {
            _ if host == "*" => Host::Any,
            Some(below) if is_host(below) => Host::Subdomains(below.to_owned()),
            None if is_host(host) => Host::Exact(host.to_owned()),
            _ => return None,
        };
        Some(Self { scheme, host, port })
    }

    fn matches(&self, scheme: &str, host: &str, port: u16) -> bool {
        let is_host = match &self.host {
            Host::Any => true,
            Host::Exact(it) => it == host,
            Host::Subdomains(below) => host
                .strip_suffix(below.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        };
        is_host
            && self.scheme.as_deref().is_none_or(|it| it == scheme)
            && self.port.is_none_or(|it| it == port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &str, is_loopback: bool, url: &str, expected: bool) {
        let allowed = Allowed::parse(patterns, is_loopback).unwrap();
        assert_eq!(allowed.check(url).is_ok(), expected, "{patterns} {url}");
    }

    #[test]
    fn webhook_calls_are_allowed_only_to_urls_that_match_a_pattern() {
        check("", false, "http://127.0.0.1/", false);
        check("", true, "http://127.0.0.1:8080/a", true);
        check("", true, "http://[::1]:8080/a", true);
        check("", true, "http://localhost/", true);
        check("", true, "http://169.254.169.254/latest", false);
        check("", true, "http://127.0.0.1.evil.test/", false);
        check("", true, "http://user@127.0.0.1/", false);
        check("", true, "ftp://127.0.0.1/", false);
        check("", true, "/relative", false);
        check("bots.test", false, "https://bots.test/a", true);
        check("bots.test", false, "https://a.bots.test/a", false);
        check("*.bots.test", false, "https://a.b.BOTS.test/a", true);
        check("*.bots.test", false, "https://bots.test/a", false);
        check("*.bots.test", false, "https://evilbots.test/a", false);
        check("https://*", false, "http://bots.test/", false);
        check("https://*", false, "https://bots.test/", true);
        check("a.test, b.test:81", false, "http://b.test:81/", true);
        check("b.test:80", false, "http://b.test/", true);
        check("b.test:443", false, "http://b.test/", false);
        check("[fd00::1]:81", false, "http://[fd00::1]:81/", true);
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        for pattern in ["ftp://a", "a:b", "*a", "a/b", "https://", "a:70000"] {
            let wrong = Allowed::parse(pattern, false).unwrap_err();
            assert_eq!(wrong.pattern, pattern);
        }
    }
}

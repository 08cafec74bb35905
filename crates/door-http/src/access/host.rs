//! Host names of requests.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns the host of `host` or `host:port`, an IPv6 address in brackets; `None` if malformed.
pub(super) fn of_authority(authority: &str) -> Option<&str> {
    let end = match authority.starts_with('[') {
        true => authority.find(']')? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    (is_whole && !host.is_empty()).then_some(host)
}

/// Returns true if a host is an IP address, which DNS cannot redirect.
pub(super) fn is_address(host: &str) -> bool {
    match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}

/// Returns true if a pattern of `http.hosts` matches a host. `*.` matches one or more labels.
pub(super) fn matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        None => host.eq_ignore_ascii_case(pattern),
        Some(suffix) => {
            let begin = host
                .len()
                .checked_sub(suffix.len())
                .filter(|begin| *begin > 0);
            let end = begin.and_then(|begin| host.get(begin..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        }
    }
}

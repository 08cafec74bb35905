//! Request preprocessing as in Express.

use axum::http::{HeaderMap, header};

/// An endpoint by its path, in any case, with or without a trailing slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint<'a> {
    Index,
    Health,
    TestRedis,
    Request,
    /// The quota of this agent, percent-encoded.
    Quota(&'a str),
    TestRateLimit,
}

const QUOTA: &str = "/api/quota/";

impl<'a> Endpoint<'a> {
    /// Returns the endpoint of a path.
    pub(super) fn of(path: &'a str) -> Option<Self> {
        let path = path.strip_suffix('/').unwrap_or(path);
        if let Some((words, agent)) = path.split_at_checked(QUOTA.len())
            && words.eq_ignore_ascii_case(QUOTA)
        {
            let is_one = !agent.is_empty() && !agent.contains('/');
            return is_one.then_some(Self::Quota(agent));
        }
        match path.to_ascii_lowercase().as_str() {
            "" => Some(Self::Index),
            "/health" => Some(Self::Health),
            "/test-redis" => Some(Self::TestRedis),
            "/api/request" => Some(Self::Request),
            "/api/test-rate-limit" => Some(Self::TestRateLimit),
            _ => None,
        }
    }
}

/// Decodes the percent escapes of a path segment; `None` if they are malformed or not UTF-8.
pub(super) fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_first_chunk::<2>()?;
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        bytes.push(digit(digits[0])? << 4 | digit(digits[1])?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

/// Returns the body as `express.json` reads it: empty for a content type other than
/// `application/json`.
pub(super) fn body_of<'a>(content_type: &str, body: &'a [u8]) -> &'a [u8] {
    match content_type.eq_ignore_ascii_case("application/json") {
        true => body,
        false => &[],
    }
}

/// Returns true if the body is compressed.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    let encoding = headers.get(header::CONTENT_ENCODING);
    encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_in_any_case_and_with_a_slash_behind() {
        for (path, endpoint) in [
            ("/", Endpoint::Index),
            ("/health/", Endpoint::Health),
            ("/API/Request", Endpoint::Request),
            ("/api/request/", Endpoint::Request),
            ("/Api/Quota/aB/", Endpoint::Quota("aB")),
            ("/api/TEST-rate-limit", Endpoint::TestRateLimit),
        ] {
            assert_eq!(Endpoint::of(path), Some(endpoint), "{path}");
        }
        for path in [
            "/health//",
            "/api/quota/",
            "/api/quota",
            "/api/quota/a/b",
            "/x",
        ] {
            assert_eq!(Endpoint::of(path), None, "{path}");
        }
    }

    #[test]
    fn malformed_percent_encoding_is_refused() {
        assert_eq!(decoded("a%20b%C3%A9"), Some("a b\u{e9}".to_owned()));
        for segment in ["%zz", "%f", "%", "%ff"] {
            assert_eq!(decoded(segment), None, "{segment}");
        }
    }
}

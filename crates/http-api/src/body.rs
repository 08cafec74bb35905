//! Reads request bodies with limits of size and time, and reports JSON errors in plain words.

use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use model::{ErrorCode, nearest};
use serde::Deserialize;

use crate::problem::Problem;

/// Longest time for a body to arrive.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(30);

/// Error: the token was revoked while in use.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the token was revoked or changed")]
pub struct Revoked;

/// Reads a body of up to `size_max` bytes.
pub async fn read(headers: &HeaderMap, body: Body, size_max: usize) -> Result<Bytes, Problem> {
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|size| size > size_max) {
        return Err(too_large(size_max));
    }
    let reading = axum::body::to_bytes(body, size_max);
    let Ok(read) = tokio::time::timeout(ARRIVAL_LIMIT, reading).await else {
        let detail = format!("the body took longer than {} s", ARRIVAL_LIMIT.as_secs());
        let status = StatusCode::REQUEST_TIMEOUT;
        return Err(Problem::new(status, ErrorCode::DeadlineExceeded, detail));
    };
    read.map_err(|error| match error.source() {
        Some(source) if source.to_string().contains("length limit") => too_large(size_max),
        _ => unreadable(error),
    })
}

/// Returns the problem of a body that did not arrive completely.
pub fn unreadable(error: axum::Error) -> Problem {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        if error.is::<Revoked>() {
            return Problem::of(ErrorCode::Unauthenticated, Revoked.to_string());
        }
        cause = error.source();
    }
    Problem::invalid(format!("the body cannot be read: {error}"))
}

fn too_large(size_max: usize) -> Problem {
    let detail = format!("the body is larger than the limit of {size_max} bytes");
    Problem::of(ErrorCode::TooLarge, detail).with("size_max", size_max)
}

/// Returns the content type without its parameters, in lower case; empty if absent.
pub fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = value.split(';').next().unwrap_or("");
    essence.trim().to_ascii_lowercase()
}

/// Checks that the content type is one of `types` and returns its value. A missing content type is
/// refused, too, since a page of any origin can send such a body (`fetch` with `no-cors`).
pub fn expect_type<T: Copy>(headers: &HeaderMap, types: &[(&str, T)]) -> Result<T, Problem> {
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let detail = "`content-encoding` is not supported: send the body uncompressed";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Problem::new(status, ErrorCode::InvalidArgument, detail));
    }
    let found = content_type(headers);
    let known = types.iter().find(|(name, _)| *name == found);
    known.map(|(_, is)| *is).ok_or_else(|| {
        let names: Vec<_> = types.iter().map(|(name, _)| *name).collect();
        let names = names.join(" or ");
        let detail = match found.is_empty() {
            true => format!("missing `content-type`: send `content-type: {names}`"),
            false => {
                format!("`content-type: {found}` is not supported: send `content-type: {names}`")
            }
        };
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Problem::new(status, ErrorCode::InvalidArgument, detail)
    })
}

/// Reads a JSON body of up to `size_max` bytes.
pub async fn read_json(headers: &HeaderMap, body: Body, size_max: usize) -> Result<Bytes, Problem> {
    expect_type(headers, &[("application/json", ())])?;
    read(headers, body, size_max).await
}

/// Parses a JSON object. An error has the path of the value and, for an unknown field, the nearest
/// known one.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    // serde would read an array as the object's fields in the order of their declaration.
    if json.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::invalid("invalid type: array, expected an object"));
    }
    parse_any(json)
}

/// Parses a JSON array, with errors as [`parse`].
pub fn parse_array<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<Vec<T>, Problem> {
    parse_any(json)
}

fn parse_any<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    // Tracking the path is slow, so it is done only after an error.
    serde_json::from_slice(json).map_err(|error| locate::<T>(json, &error))
}

fn locate<'a, T: Deserialize<'a>>(json: &'a [u8], error: &serde_json::Error) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let located = serde_path_to_error::deserialize::<_, T>(&mut reader);
    let (path, reason) = match located {
        Err(located) => {
            let path = located.path().to_string();
            // A key that a custom visitor rejects has no name in the path.
            let path = path.strip_suffix(".?").unwrap_or(&path).to_owned();
            (path, located.inner().to_string())
        }
        Ok(_) => (String::new(), error.to_string()),
    };
    if error.is_syntax() || error.is_eof() {
        return Problem::invalid(format!("malformed JSON: {reason}"));
    }
    wrong_at(&path, &explain(&reason))
}

/// Returns the problem of an invalid value at a path of the body.
pub fn wrong_at(path: &str, reason: &str) -> Problem {
    match path {
        "" | "." => Problem::invalid(reason),
        path => Problem::invalid(format!("`{path}`: {reason}")).with("path", path),
    }
}

/// Rewrites an error of serde. For an unknown field, it names the nearest known field instead of
/// all.
pub fn explain(reason: &str) -> String {
    if let Some((found, _)) = reason.split_once(", expected struct ") {
        return format!("{found}, expected an object");
    }
    let reason = reason
        .find("unknown field ")
        .map_or(reason, |at| &reason[at..]);
    let mut words = reason.split('`').skip(1).step_by(2);
    match words.next() {
        Some(field) if reason.starts_with("unknown field ") => unknown("field", field, words),
        _ => plain(reason),
    }
}

/// Rewrites an error of serde without the names of Rust types.
fn plain(reason: &str) -> String {
    let Some((found, expected)) = reason.rsplit_once(", expected ") else {
        return reason.to_owned();
    };
    let at = expected.find(" at line ").unwrap_or(expected.len());
    let (expected, place) = expected.split_at(at);
    let expected = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "u128" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other if other.starts_with("tuple ") || other.starts_with("a tuple ") => "an array",
        other if other.starts_with("enum ") || other.starts_with("variant ") => "another value",
        other if other.contains("string") => "a string",
        other => other,
    };
    format!("{found}, expected {expected}{place}")
}

/// Describes an unknown word, with the nearest known one or all of them.
pub fn unknown<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(nearest) => format!("there is no {what} `{word}`; is `{nearest}` meant?"),
        None => {
            let known: Vec<_> = known.collect();
            format!(
                "there is no {what} `{word}`; there are {}",
                known.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(rename = "messages")]
        _messages: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(rename = "role")]
        _role: String,
    }

    #[track_caller]
    fn check(json: &str, expected: &str) {
        let problem = parse::<Outer>(json.as_bytes()).unwrap_err();
        assert_eq!(problem.status, StatusCode::BAD_REQUEST);
        assert!(problem.detail.starts_with(expected), "{}", problem.detail);
    }

    #[test]
    fn an_invalid_body_is_refused_with_the_path_of_the_field() {
        let slip = r#"{"messages":[{"role":"a"},{"rolle":"b"}]}"#;
        check(
            slip,
            "`messages[1].rolle`: there is no field `rolle`; is `role` meant?",
        );
        let other = r#"{"zzzzzz":1}"#;
        check(
            other,
            "`zzzzzz`: there is no field `zzzzzz`; there are messages",
        );
        let wrong = r#"{"messages":[{"role":7}]}"#;
        check(
            wrong,
            "`messages[0].role`: invalid type: integer `7`, expected a string",
        );
        check(
            r#"{"messages":[{}]}"#,
            "`messages[0]`: missing field `role`",
        );
        check("null", "invalid type: null, expected an object");
        check("{}", "missing field `messages`");
        check("7", "invalid type: integer `7`, expected an object");
        check(
            r#"{"messages":7}"#,
            "`messages`: invalid type: integer `7`, expected an array",
        );
        check(r#"{"messages":["#, "malformed JSON: EOF");
        check(r#"{"messages":[]} x"#, "malformed JSON: trailing");
        check(r#"{"messages":[{"role":"\uZ"}]}"#, "malformed JSON: ");
        check("", "malformed JSON: EOF");
    }
}

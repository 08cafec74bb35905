//! Reading what a client sends: whole bodies within a size and a time, JSON in our own words.

use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use model::{ErrorCode, nearest};
use serde::Deserialize;

use super::problem::Problem;
use super::revocable::Revoked;

/// How long a body may take to arrive.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(30);

/// Reads a body of up to `size_max` bytes.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    size_max: usize,
) -> Result<Bytes, Problem> {
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

/// A body that did not arrive as a whole.
pub(super) fn unreadable(error: axum::Error) -> Problem {
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
    let detail = format!("the body is larger than {size_max} bytes");
    Problem::of(ErrorCode::TooLarge, detail).with("size_max", size_max)
}

/// The type of a body, without its parameters, in lower case; empty if it is not said.
pub(super) fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = value.split(';').next().unwrap_or("");
    essence.trim().to_ascii_lowercase()
}

/// Refuses a body that is not said to be one of these. One without a type is refused, too: it is what a
/// page of any origin can send (`fetch` with `no-cors`).
pub(super) fn expect_type<T: Copy>(headers: &HeaderMap, types: &[(&str, T)]) -> Result<T, Problem> {
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let detail = "a body with a `content-encoding` is not taken: send it as it is";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Problem::new(status, ErrorCode::InvalidArgument, detail));
    }
    let found = content_type(headers);
    let known = types.iter().find(|(name, _)| *name == found);
    known.map(|(_, is)| *is).ok_or_else(|| {
        let names: Vec<_> = types.iter().map(|(name, _)| *name).collect();
        let names = names.join(" or ");
        let detail = match found.is_empty() {
            true => format!("a body without `content-type`: send `content-type: {names}`"),
            false => format!("`content-type: {found}` is not taken: send `content-type: {names}`"),
        };
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Problem::new(status, ErrorCode::InvalidArgument, detail)
    })
}

/// Reads a JSON body of up to `size_max` bytes.
pub(super) async fn read_json(
    headers: &HeaderMap,
    body: Body,
    size_max: usize,
) -> Result<Bytes, Problem> {
    expect_type(headers, &[("application/json", ())])?;
    read(headers, body, size_max).await
}

/// Reads a JSON object; what is wrong is told with its path and, for an unknown field, the nearest
/// known.
pub(super) fn parse<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    // It would be read as the fields of the object, in the order in which they are declared.
    if json.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::invalid("an array, where an object is expected"));
    }
    parse_any(json)
}

/// The same of an array.
pub(super) fn parse_array<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<Vec<T>, Problem> {
    parse_any(json)
}

fn parse_any<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    // The path costs something, so it is looked for only when it is needed.
    serde_json::from_slice(json).map_err(|error| locate::<T>(json, &error))
}

fn locate<'a, T: Deserialize<'a>>(json: &'a [u8], error: &serde_json::Error) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let located = serde_path_to_error::deserialize::<_, T>(&mut reader);
    let (path, reason) = match located {
        Err(located) => (located.path().to_string(), located.inner().to_string()),
        Ok(_) => (String::new(), error.to_string()),
    };
    if error.is_syntax() || error.is_eof() {
        return Problem::invalid(format!("malformed JSON: {reason}"));
    }
    wrong_at(&path, &explain(&reason))
}

/// A value that is not as it has to be.
pub(super) fn wrong_at(path: &str, reason: &str) -> Problem {
    match path {
        "" | "." => Problem::invalid(reason),
        path => Problem::invalid(format!("`{path}`: {reason}")).with("path", path),
    }
}

/// What `serde` says of an unknown field lists all that are known; whoever slipped wants the one.
pub(super) fn explain(reason: &str) -> String {
    if let Some((found, _)) = reason.split_once(", expected struct ") {
        return format!("{found}, expected an object");
    }
    let reason = reason
        .find("unknown field ")
        .map_or(reason, |at| &reason[at..]);
    let mut words = reason.split('`').skip(1).step_by(2);
    match words.next() {
        Some(field) if reason.starts_with("unknown field ") => unknown("field", field, words),
        _ => reason.to_owned(),
    }
}

/// That there is no such thing, and which one may be meant.
pub(super) fn unknown<'a>(
    what: &str,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
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
    fn what_is_wrong_is_told_with_its_path() {
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
        check(r#"{"messages":["#, "malformed JSON: EOF");
        check(r#"{"messages":[]} x"#, "malformed JSON: trailing");
        check(r#"{"messages":[{"role":"\uZ"}]}"#, "malformed JSON: ");
        check("", "malformed JSON: EOF");
    }
}

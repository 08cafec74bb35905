//! Metadata of messages as HTTP headers, and bodies and metadata as JSON.
//!
//! `Content-Type`, `traceparent` and `tracestate` become entries of the same name, and
//! `Telpher-Metadata-KEY` the entry `key`, in lower case. An entry of an answer whose value is no
//! header value is sent in base64 as `Telpher-Metadata-KEY-bin`, as gRPC does; one whose key is no
//! header name is left out.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_api::Problem;
use model::ErrorCode;
use serde_json::{Map, Value};
use wire::{Metadata, TRACEPARENT, TRACESTATE, encode_metadata};

/// The entry with the type of the body.
const CONTENT_TYPE: &str = "content-type";

/// The start of the names of headers with metadata.
const PREFIX: &str = "telpher-metadata-";

/// The end of the names of headers whose value is in base64.
const BINARY: &str = "-bin";

/// Largest metadata of a request, in bytes.
const SIZE_MAX: usize = 32 << 10;

/// Returns the metadata entries of a request.
pub(crate) fn read(headers: &HeaderMap) -> Result<Vec<u8>, Problem> {
    let mut entries = Vec::new();
    for (name, value) in headers {
        let name = name.as_str();
        let (key, is_binary) = match name.strip_prefix(PREFIX) {
            Some(key) => match key.strip_suffix(BINARY) {
                Some(key) => (key, true),
                None => (key, false),
            },
            None if [CONTENT_TYPE, TRACEPARENT, TRACESTATE].contains(&name) => (name, false),
            None => continue,
        };
        if key.is_empty() || key.len() > usize::from(u8::MAX) || key == wire::SOURCE {
            return Err(Problem::invalid(format!("`{name}` is no metadata key")));
        }
        match is_binary {
            false => encode_metadata(key, value.as_bytes(), &mut entries),
            true => {
                let value = STANDARD.decode(value.as_bytes()).map_err(|error| {
                    Problem::invalid(format!("`{name}`: invalid base64: {error}"))
                })?;
                encode_metadata(key, &value, &mut entries);
            }
        }
        if entries.len() > SIZE_MAX {
            let detail = format!("the metadata is larger than the limit of {SIZE_MAX} bytes");
            let problem = Problem::of(ErrorCode::TooLarge, detail);
            return Err(problem.with("size_max", SIZE_MAX));
        }
    }
    Ok(entries)
}

/// Adds the headers of an answer's metadata.
pub(crate) fn write(metadata: &[u8], headers: &mut HeaderMap) {
    for (key, value) in entries(metadata) {
        if key == CONTENT_TYPE {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.insert(header::CONTENT_TYPE, value);
            }
            continue;
        }
        let (suffix, value) = match HeaderValue::from_bytes(value) {
            Ok(value) => ("", value),
            Err(_) => match HeaderValue::from_str(&STANDARD.encode(value)) {
                Ok(value) => (BINARY, value),
                Err(_) => continue,
            },
        };
        // A key with other characters is no header name.
        if let Ok(name) = HeaderName::try_from(format!("{PREFIX}{key}{suffix}")) {
            headers.append(name, value);
        }
    }
}

/// Adds a body and its metadata to a JSON object: texts as they are, other bytes as base64 under
/// `body_base64` and `metadata_base64`.
pub(crate) fn insert(object: &mut Map<String, Value>, metadata: &[u8], body: &[u8]) {
    let (mut texts, mut others) = (Map::new(), Map::new());
    for (key, value) in entries(metadata) {
        match std::str::from_utf8(value) {
            Ok(text) => texts.insert(key.to_owned(), text.into()),
            Err(_) => others.insert(key.to_owned(), STANDARD.encode(value).into()),
        };
    }
    for (member, values) in [("metadata", texts), ("metadata_base64", others)] {
        if !values.is_empty() {
            object.insert(member.to_owned(), values.into());
        }
    }
    match std::str::from_utf8(body) {
        Ok(text) => object.insert("body".to_owned(), text.into()),
        Err(_) => object.insert("body_base64".to_owned(), STANDARD.encode(body).into()),
    };
}

fn entries(metadata: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    Metadata::new(metadata).iter().filter_map(Result::ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_headers_are_read_and_written_back() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "text/plain"),
            ("traceparent", "00-1-2-01"),
            ("telpher-metadata-tenant", "a b"),
            ("telpher-metadata-raw-bin", "/wA="),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let entries = read(&headers).unwrap();
        let found = Metadata::new(&entries);
        assert_eq!(found.iter().count(), 4);
        assert_eq!(found.get("tenant"), Some(&b"a b"[..]));
        assert_eq!(found.get("raw"), Some(&b"\xff\0"[..]));
        let mut answer = HeaderMap::new();
        write(&entries, &mut answer);
        assert_eq!(answer["content-type"], "text/plain");
        assert_eq!(answer["telpher-metadata-traceparent"], "00-1-2-01");
        assert_eq!(answer["telpher-metadata-raw-bin"], "/wA=");
    }

    #[test]
    fn invalid_metadata_headers_are_refused() {
        for (name, value) in [
            ("telpher-metadata-", "x"),
            ("telpher-metadata-source", "acme/demo/boss"),
            ("telpher-metadata-x-bin", "?"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert!(read(&headers).is_err(), "{name}");
        }
        let mut headers = HeaderMap::new();
        let large = HeaderValue::try_from("x".repeat(SIZE_MAX)).unwrap();
        headers.insert("telpher-metadata-large", large);
        assert_eq!(read(&headers).unwrap_err().code, ErrorCode::TooLarge);
    }
}

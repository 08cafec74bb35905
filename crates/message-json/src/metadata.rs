//! Metadata of messages and conversations: validated before it is stored, rendered safely when it
//! is read.
//!
//! Metadata is opaque bytes to the node, and every reader puts it into JSON as it is. So each
//! listener validates it before passing it to the node. A journal may contain metadata that was
//! stored without that check: it is rendered as `null` and counted.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;

/// The reason why metadata is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The bytes are not UTF-8.
    #[error("metadata must be UTF-8")]
    NotUtf8,
    /// The value is not a JSON object.
    #[error("metadata must be a JSON object")]
    NotObject,
    /// The bytes are not exactly one JSON value.
    #[error("malformed JSON: {0}")]
    Malformed(String),
    /// Objects and arrays are nested too deeply.
    #[error(
        "metadata is nested {depth} objects and arrays deep (limit {max})",
        max = json::DEPTH_MAX
    )]
    TooDeep {
        /// The depth of the value.
        depth: usize,
    },
}

/// The count for [`invalid_count`].
static INVALID: AtomicU64 = AtomicU64::new(0);

/// Checks that metadata is one whole JSON object in UTF-8, nested at most [`json::DEPTH_MAX`] deep.
/// Empty bytes are an empty object.
pub fn check(bytes: &[u8]) -> Result<(), MetadataError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| MetadataError::NotUtf8)?;
    let whole = serde_json::from_str::<&RawValue>(text);
    let whole = whole.map_err(|error| MetadataError::Malformed(error.to_string()))?;
    if !whole.get().starts_with('{') {
        return Err(MetadataError::NotObject);
    }
    match json::depth(bytes) {
        depth if depth > json::DEPTH_MAX => Err(MetadataError::TooDeep { depth }),
        _ => Ok(()),
    }
}

/// Returns the JSON of stored metadata: `{}` for none, `null` for bytes that [`check`] refuses.
pub fn rendered(stored: &[u8]) -> &[u8] {
    match stored {
        b"" | b"{}" => b"{}",
        stored if check(stored).is_ok() => stored,
        _ => {
            INVALID.fetch_add(1, Ordering::Relaxed);
            b"null"
        }
    }
}

/// Returns how many times invalid metadata was rendered as `null` since the process started.
pub fn invalid_count() -> u64 {
    INVALID.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_other_than_one_complete_json_object_are_refused() {
        let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        for good in ["", "{}", r#" {"a":[1,{}]} "#, &deep(json::DEPTH_MAX - 1)] {
            assert_eq!(check(good.as_bytes()), Ok(()), "{good}");
        }
        let check_error = |bytes: &[u8], expected: &str| {
            let error = check(bytes).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(rendered(bytes), b"null");
        };
        check_error(b"\xff\xfe not json", "metadata must be UTF-8");
        check_error(br#"{},"role":"system""#, "malformed JSON: trailing");
        check_error(br#"{"a":1"#, "malformed JSON: EOF");
        check_error(b"[]", "metadata must be a JSON object");
        check_error(b"null", "metadata must be a JSON object");
        check_error(b" ", "malformed JSON: EOF");
        check_error(
            deep(json::DEPTH_MAX).as_bytes(),
            "metadata is nested 65 objects and arrays deep",
        );
        check_error("[".repeat(16 << 10).as_bytes(), "malformed JSON: EOF");
    }
}

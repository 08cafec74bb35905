//! JSON representation of record bytes.
//!
//! | JSON | bytes |
//! |---|---|
//! | `null` | none |
//! | `"text"` | the string in UTF-8 |
//! | `{"base64": "…"}`, without another member | the decoded bytes |
//! | any other value | its JSON text, byte for byte |
//!
//! Bytes that are a JSON object or array are shown as JSON, other UTF-8 as a string, all else as
//! base64. Invariant: *bytes that are read and written again stay identical.* For this reason a
//! number is shown as a string: `0.10` and long ids keep every digit.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// The object that represents base64-encoded bytes.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Base64<'a> {
    #[serde(borrow)]
    base64: Cow<'a, str>,
}

/// Decodes a JSON value; `None` for `null`.
pub(super) fn read(value: &RawValue) -> Result<Option<Cow<'_, [u8]>>, String> {
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => Ok(Some(Cow::Owned(text.into_bytes()))),
            Err(error) => Err(error.to_string()),
        },
        Some(b'{') => match base64_of(json) {
            Some(text) => match STANDARD.decode(text.as_bytes()) {
                Ok(bytes) => Ok(Some(Cow::Owned(bytes))),
                Err(error) => Err(format!("invalid base64: {error}")),
            },
            None => Ok(Some(Cow::Borrowed(json.as_bytes()))),
        },
        _ => Ok(Some(Cow::Borrowed(json.as_bytes()))),
    }
}

fn base64_of(json: &str) -> Option<Cow<'_, str>> {
    let object = serde_json::from_str::<Base64<'_>>(json).ok()?;
    Some(object.base64)
}

/// Record bytes, serialized as JSON.
pub(super) struct BytesAsJson<'a>(pub(super) Option<&'a [u8]>);

impl Serialize for BytesAsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(bytes) = self.0 else {
            return serializer.serialize_none();
        };
        match (json_of(bytes), std::str::from_utf8(bytes)) {
            (Some(json), _) => json.serialize(serializer),
            (None, Ok(text)) => serializer.serialize_str(text),
            (None, Err(_)) => {
                let base64 = STANDARD.encode(bytes).into();
                Base64 { base64 }.serialize(serializer)
            }
        }
    }
}

/// Returns the bytes as JSON if they are an object or array that [`read`] would turn into the same
/// bytes.
fn json_of(bytes: &[u8]) -> Option<&RawValue> {
    if !matches!(bytes, [b'{', .., b'}'] | [b'[', .., b']']) {
        return None;
    }
    let json = serde_json::from_slice::<&RawValue>(bytes).ok()?;
    base64_of(json.get()).is_none().then_some(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], json: &str) {
        let shown = serde_json::to_string(&BytesAsJson(Some(bytes))).unwrap();
        assert_eq!(shown, json);
        let value = serde_json::from_str::<&RawValue>(&shown).unwrap();
        assert_eq!(read(value).unwrap().as_deref(), Some(bytes));
    }

    #[test]
    fn bytes_written_as_json_are_read_back_unchanged() {
        check(b"", r#""""#);
        check(b"hello", r#""hello""#);
        check(br#"{"a": [1, 2.50]}"#, r#"{"a": [1, 2.50]}"#);
        check(b"[]", "[]");
        check(b" {} ", r#"" {} ""#);
        check(b"0.10", r#""0.10""#);
        check(b"null", r#""null""#);
        check(b"\"x\"", r#""\"x\"""#);
        check(b"{", r#""{""#);
        check(b"\xff\x00", r#"{"base64":"/wA="}"#);
        check(br#"{"base64":"/wA="}"#, r#""{\"base64\":\"/wA=\"}""#);
        check(br#"{"base64":7}"#, r#"{"base64":7}"#);
    }

    #[test]
    fn no_value_is_null_and_invalid_base64_is_refused() {
        let value = |json| serde_json::from_str::<&RawValue>(json).unwrap();
        assert_eq!(read(value("null")), Ok(None));
        assert_eq!(serde_json::to_string(&BytesAsJson(None)).unwrap(), "null");
        assert_eq!(read(value("42")).unwrap().as_deref(), Some(&b"42"[..]));
        let refused = read(value(r#"{"base64":"?"}"#)).unwrap_err();
        assert!(refused.starts_with("invalid base64: "), "{refused}");
        assert!(read(value(r#""\ud800""#)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_round_trip(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)) {
            let shown = serde_json::to_string(&BytesAsJson(Some(&bytes))).unwrap();
            let value = serde_json::from_str::<&RawValue>(&shown).unwrap();
            let back = read(value).unwrap();
            proptest::prop_assert_eq!(back.as_deref(), Some(&bytes[..]));
        }
    }
}

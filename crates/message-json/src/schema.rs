//! JSON Schemas of an agent's methods, which the node stores and returns as they were written.

use json::DEPTH_MAX;
use serde_json::value::RawValue;

/// Checks that a text is JSON that can be a schema: an object or a boolean, not too deeply nested.
/// The rules of the schema are not checked.
pub fn check(text: &str) -> Result<(), String> {
    let value: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let json = value.get();
    let depth = json::depth(json.as_bytes());
    if depth > DEPTH_MAX {
        return Err(format!("{depth} nested values (limit {DEPTH_MAX})"));
    }
    match json.as_bytes().first() {
        Some(b'{' | b't' | b'f') => Ok(()),
        _ => Err("not an object or a boolean".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_is_an_object_or_a_boolean() {
        for text in ["{}", " {\"type\": \"string\"} ", "true", "false"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        let deep = format!("{}{}", "{\"a\":".repeat(65), "}".repeat(65));
        for text in ["", "{", "7", "\"x\"", "[]", "null", "{} {}", deep.as_str()] {
            assert!(check(text).is_err(), "{text}");
        }
    }
}

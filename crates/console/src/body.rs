//! Reads bodies from the command line and formats them for output.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::output::one_line;
use crate::{Exit, Failure};

/// Reads a body: the text itself, or the standard input for `-`.
pub fn read(text: &str) -> Result<Vec<u8>, Failure> {
    if text != "-" {
        return Ok(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::new();
    match std::io::stdin().lock().read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => {
            let message = format!("cannot read the standard input: {error}");
            Err(Failure::new(Exit::Failed, message).hint("give the body as an argument"))
        }
    }
}

/// Adds bytes to a JSON object: as text under `key`, or as `KEY_base64` if they are not UTF-8.
pub fn insert(object: &mut Map<String, Value>, key: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(key.to_owned(), text.into()),
        Err(_) => object.insert(format!("{key}_base64"), STANDARD.encode(bytes).into()),
    };
}

/// Formats bytes on one line.
pub fn show(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => one_line(text),
        Err(_) => format!("({} bytes that are not UTF-8)", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_become_base64() {
        let mut object = Map::new();
        insert(&mut object, "body", b"hi");
        insert(&mut object, "other", &[0xff]);
        let value = Value::Object(object);
        assert_eq!(
            value,
            serde_json::json!({ "body": "hi", "other_base64": "/w==" })
        );
        assert_eq!(show(b"a\nb"), "a\\nb");
        assert_eq!(show(&[0xff, 0]), "(2 bytes that are not UTF-8)");
    }
}

//! Content of the messages.

/// Returns a text of `size` bytes that needs no escaping.
#[must_use]
pub fn text(size: usize, seed: u32) -> String {
    let letters = b"abcdefghijklmnopqrstuvwxyz ";
    let letter = |at: usize| char::from(letters[(at * 7 + seed as usize) % letters.len()]);
    (0..size).map(letter).collect()
}

/// Returns the parts of a message with this text, as JSON.
pub(super) fn parts(text: &str) -> String {
    format!(r#"[{{"type":"text","text":"{text}"}}]"#)
}

/// Returns a message as JSON. Neither argument may need escaping.
pub(super) fn message(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","role":"user","parts":{}}}"#, parts(text))
}

/// Returns the HTTP path of a conversation's messages.
pub(super) fn path(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/messages")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_size_and_differs_by_its_seed() {
        assert_eq!(text(256, 3).len(), 256);
        assert_eq!(text(0, 3), "");
        assert_ne!(text(64, 1), text(64, 2));
    }

    #[test]
    fn a_message_is_json_and_its_text_is_whole() {
        let text = text(300, 5);
        let message: serde_json::Value = serde_json::from_str(&message("m-1", &text)).unwrap();
        assert_eq!(
            (&message["id"], &message["role"]),
            (&"m-1".into(), &"user".into())
        );
        assert_eq!(message["parts"][0]["text"], text);
    }
}

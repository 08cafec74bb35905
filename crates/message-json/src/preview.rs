//! Previews of messages, for lists.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// The length of a preview, in characters.
const LENGTH_MAX: usize = 200;

/// Returns the beginning of the first text part; `None` if there is none. Later parts are not
/// parsed.
pub fn preview(parts: &[u8]) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_slice(parts);
    let mut first = None;
    // An error ends the parsing once the text is found.
    let _ = reader.deserialize_seq(First(&mut first));
    first
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

struct First<'a>(&'a mut Option<String>);

impl<'de> Visitor<'de> for First<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        while let Some(part) = parts.next_element::<Part<'_>>()? {
            if part.kind.as_deref() == Some("text")
                && let Some(text) = part.text
            {
                *self.0 = Some(text.chars().take(LENGTH_MAX).collect());
                return Err(A::Error::custom("it is found"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preview_is_the_first_text_part_up_to_its_limit() {
        for (parts, expected) in [
            (
                r#"[{"type":"text","text":"one"},{"type":"text","text":"two"}]"#,
                Some("one"),
            ),
            (
                r#"[{"type":"file","url":"x"},{"type":"text","text":"a\u00e9"}]"#,
                Some("aé"),
            ),
            (r#"[{"type":"text","text":"one"},no JSON"#, Some("one")),
            (r#"[{"type":"reasoning","text":"hm"}]"#, None),
            (r#"[{"type":"text","text":7}]"#, None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(preview(parts.as_bytes()).as_deref(), expected, "{parts}");
        }
        let long = format!(r#"[{{"type":"text","text":"{}"}}]"#, "é".repeat(1_000));
        assert_eq!(
            preview(long.as_bytes()).map(|it| it.chars().count()),
            Some(LENGTH_MAX)
        );
    }
}

//! The facts of message parts that context windows need, read from their JSON.
//!
//! The engine drops old tool output and reasoning and never separates a tool call from its result,
//! but knows no JSON: it gets a [`PartFact`] per part and opaque bytes. Three vocabularies are
//! understood: the parts of the AI SDK (UI and model messages), of OpenAI (chat completions and
//! responses) and of Anthropic. Any other part is [`PartKind::Other`] and is stored like the
//! others.
//!
//! The content of parts is not deserialized: a few strings are borrowed, the rest is skipped.

mod part;
mod stub;
#[cfg(test)]
mod tests;
mod word;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub use conversation_service::{PartFact, PartKind};
pub use stub::shrunk;

/// The largest number of parts in one message.
pub const PARTS_MAX: usize = 1024;

/// The reason why the parts of a message are invalid, and the place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// The bytes are not a JSON array.
    #[error("parts is not an array: {0}")]
    NoArray(String),
    /// There are more than [`PARTS_MAX`].
    #[error("too many parts (limit {PARTS_MAX})")]
    TooMany,
    /// Objects and arrays are nested too deeply.
    #[error("parts are nested {0} objects and arrays deep (limit {max})", max = json::DEPTH_MAX)]
    TooDeep(usize),
    /// A part is not an object, or a field has the wrong type.
    #[error("parts[{index}]{reason}")]
    Part {
        /// The index of the part, from 0.
        index: usize,
        /// The path within the part and the error there.
        reason: String,
    },
}

/// Appends the facts of each of `parts`, a JSON array, to `facts`.
pub fn extract(parts: &[u8], facts: &mut Vec<PartFact>) -> Result<(), PartsError> {
    let text = std::str::from_utf8(parts);
    if let Ok(text) = text
        && let Some(fact) = part::read_single_text(text)
    {
        facts.push(fact);
        return Ok(());
    }
    let depth = json::depth(parts);
    if depth > json::DEPTH_MAX {
        return Err(PartsError::TooDeep(depth));
    }
    let parts = text.map_err(|error| PartsError::NoArray(error.to_string()))?;
    let mut reader = serde_json::Deserializer::from_str(parts);
    let mut failed = None;
    let read = Parts {
        facts,
        failed: &mut failed,
    };
    let outcome = read.deserialize(&mut reader).and_then(|()| reader.end());
    match (failed, outcome) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(PartsError::NoArray(error.to_string())),
        (None, Ok(())) => Ok(()),
    }
}

/// Returns the facts of one part, or the path and the error.
pub(crate) fn of_part(part: &str) -> Result<PartFact, String> {
    part::read(part)
}

/// Reads the array part by part.
struct Parts<'f> {
    facts: &'f mut Vec<PartFact>,
    /// Our own error; the deserializer's error only ends the reading.
    failed: &'f mut Option<PartsError>,
}

impl<'de> DeserializeSeed<'de> for Parts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Parts<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of parts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(part) = items.next_element::<&RawValue>()? {
            let fact = match part::read_valid(part) {
                _ if index == PARTS_MAX => Err(PartsError::TooMany),
                Ok(fact) => Ok(fact),
                Err(reason) => Err(PartsError::Part { index, reason }),
            };
            match fact {
                Ok(fact) => self.facts.push(fact),
                Err(error) => {
                    *self.failed = Some(error);
                    return Err(serde::de::Error::custom("a part is wrong"));
                }
            }
            index += 1;
        }
        Ok(())
    }
}

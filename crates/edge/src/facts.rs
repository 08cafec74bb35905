//! What a context window must know of a message's parts, read from their JSON.
//!
//! The engine drops old tool output and reasoning and never parts a tool call from its result, but
//! knows no JSON: it sees a [`PartFact`] per part and opaque bytes. Three vocabularies are
//! understood: parts of the AI SDK (UI and model messages), of OpenAI (chat completions and
//! responses) and of Anthropic. Whatever has no meaning here is [`PartKind::Other`] and is kept
//! like everything else.
//!
//! Nothing is built of what is in a part: a few strings are borrowed, the rest is skipped.

mod part;
mod stub;
#[cfg(test)]
mod tests;
mod word;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json;
pub use node::conversations::{PartFact, PartKind};
pub(crate) use stub::shrunk;

/// Parts in one message, at most.
pub const PARTS_MAX: usize = 1024;

/// What is wrong with the parts of a message, where it is.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// The bytes are no JSON array.
    #[error("parts is no array: {0}")]
    NoArray(String),
    /// More than [`PARTS_MAX`].
    #[error("there are more than {PARTS_MAX} parts")]
    TooMany,
    /// Objects and arrays lie too deep within each other.
    #[error("parts lie {0} objects and arrays deep, at most {max} are taken", max = json::DEPTH_MAX)]
    TooDeep(usize),
    /// A part that is no object, or a field of the wrong type.
    #[error("parts[{index}]{reason}")]
    Part {
        /// Which one, from 0.
        index: usize,
        /// The path within it and what is wrong there.
        reason: String,
    },
}

/// Appends the fact of each of `parts`, a JSON array, to `facts`.
pub fn extract(parts: &[u8], facts: &mut Vec<PartFact>) -> Result<(), PartsError> {
    let depth = json::depth(parts);
    if depth > json::DEPTH_MAX {
        return Err(PartsError::TooDeep(depth));
    }
    let parts = std::str::from_utf8(parts);
    let parts = parts.map_err(|error| PartsError::NoArray(error.to_string()))?;
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

/// The fact of one part, or its path and what is wrong there.
pub(crate) fn of_part(part: &str) -> Result<PartFact, String> {
    part::read(part)
}

/// Reads the array part by part.
struct Parts<'f> {
    facts: &'f mut Vec<PartFact>,
    /// What is wrong in our own words; the deserializer's error only ends the reading.
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
            let fact = match part::read(part.get()) {
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

//! Records of a namespace's event partition.

use super::Malformed;
use super::bytes::FieldReader;

/// The kind of event, as the tag of an [`EventRef`] record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventTag {
    /// A message was appended: `offset` in the stream of messages.
    Message = 1,
    /// The state changed: `offset` in the stream of state.
    State = 2,
    /// The conversation was erased: `offset` of its tombstone in the stream of state.
    Erased = 3,
}

impl EventTag {
    /// Returns the tag with that number.
    pub fn from_u8(number: u8) -> Option<Self> {
        [Self::Message, Self::State, Self::Erased]
            .into_iter()
            .find(|tag| *tag as u8 == number)
    }
}

/// An event: a reference to the record of the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRef {
    /// The conversation, as the stream of its messages, for every kind of event.
    pub conversation: u64,
    /// The offset of the record in the stream that the tag determines.
    pub offset: u64,
}

impl EventRef {
    /// Returns the record's bytes.
    pub fn encode(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.conversation.to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "event");
        let event = Self {
            conversation: rest.u64()?,
            offset: rest.u64()?,
        };
        rest.end()?;
        Ok(event)
    }
}

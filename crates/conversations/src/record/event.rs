//! What stands in the event partition of a namespace.

use super::Malformed;
use super::bytes::Rest;

/// What happened; the tag of an [`EventRef`]'s record.
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
    /// The tag of that number.
    pub fn from_u8(number: u8) -> Option<Self> {
        [Self::Message, Self::State, Self::Erased]
            .into_iter()
            .find(|tag| *tag as u8 == number)
    }
}

/// An event: a reference to the record that tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRef {
    /// The stream of the conversation's messages, whatever happened.
    pub conversation: u64,
    /// The record, in the stream that the tag says.
    pub offset: u64,
}

impl EventRef {
    /// The record's bytes.
    pub fn encode(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.conversation.to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// Reads a record back.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "event");
        let event = Self {
            conversation: rest.u64()?,
            offset: rest.u64()?,
        };
        rest.end()?;
        Ok(event)
    }
}

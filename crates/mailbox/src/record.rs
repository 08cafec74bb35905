//! The records of a mailbox's stream, byte by byte.
//!
//! There are four kinds of records, distinguished by the stream's tag. All numbers are
//! little-endian. A layout is never changed; a different layout gets a new tag.
//!
//! ```text
//! 1 WRITE   flags u8 (bit 0: an id follows) | id 16 | expires_ms u64 | sender u16 + text
//!           | method u8 + text | metadata u16 + bytes | body
//! 2 NOTES   any number of: offset u64 | deliveries u32, or from the top of its range: 1 it left the
//!           mailbox, 2 it was refused and is a dead letter, 3 it was unanswered and is a dead
//!           letter, 4 it was revived
//! 3 IDS     any number of: offset u64 | flags u8 (bit 0: it has an id) | id 16
//! 4 MOVED   offset u64 | written_ms u64 | deliveries u32 | forgiven u32
//!           | dead u8 (0 no, 1 it was refused, 2 it was unanswered) | WRITE
//! ```
//!
//! IDS repeats the ids of the newest writes, and MOVED an old write under its original offset, so
//! that the writes themselves can be trimmed.

use crate::ids::WriteId;
use crate::types::{Cause, MessageState};

/// Tag of a [`Write`].
pub const WRITE: u8 = 1;
/// Tag of [`Note`]s.
pub const NOTES: u8 = 2;
/// Tag of the ids of the newest writes.
pub const IDS: u8 = 3;
/// Tag of a [`Moved`].
pub const MOVED: u8 = 4;

const HAS_ID: u8 = 1;
const NOTE_SIZE: usize = 12;
/// Bytes per id in [`IDS`].
pub const ID_SIZE: usize = 25;
const LEFT: u32 = u32::MAX;
const DEAD_REFUSED: u32 = u32::MAX - 1;
const DEAD_UNANSWERED: u32 = u32::MAX - 2;
const REVIVED: u32 = u32::MAX - 3;

/// Invalid bytes for the tag of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} in a mailbox")]
pub struct Malformed {
    /// Name of the structure that was being read.
    pub what: &'static str,
}

/// A message as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    /// Id given by the writer.
    pub id: Option<WriteId>,
    /// Expiry time in milliseconds since 1970-01-01 UTC.
    pub expires_ms: u64,
    /// Name of the sender. At most 65,535 bytes.
    pub sender: &'a str,
    /// Method to call; empty for none. At most 255 bytes.
    pub method: &'a str,
    /// Opaque metadata entries. At most 65,535 bytes.
    pub metadata: &'a [u8],
    /// Opaque bytes.
    pub body: &'a [u8],
}

impl<'a> Write<'a> {
    /// Appends the record.
    ///
    /// # Panics
    /// If a part is longer than its length field allows: callers must bound the parts.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let short = |length: usize| {
            let length = u16::try_from(length);
            length
                .expect("a part of a write has at most 65,535 bytes")
                .to_le_bytes()
        };
        let method = u8::try_from(self.method.len());
        out.push(if self.id.is_some() { HAS_ID } else { 0 });
        if let Some(WriteId(id)) = self.id {
            out.extend_from_slice(&id);
        }
        out.extend_from_slice(&self.expires_ms.to_le_bytes());
        out.extend_from_slice(&short(self.sender.len()));
        out.extend_from_slice(self.sender.as_bytes());
        out.push(method.expect("a method has at most 255 bytes"));
        out.extend_from_slice(self.method.as_bytes());
        out.extend_from_slice(&short(self.metadata.len()));
        out.extend_from_slice(self.metadata);
        out.extend_from_slice(self.body);
    }

    /// Decodes a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = Rest {
            bytes,
            what: "write",
        };
        let id = match rest.array::<1>()?[0] & HAS_ID {
            0 => None,
            _ => Some(WriteId(rest.array()?)),
        };
        let expires_ms = u64::from_le_bytes(rest.array()?);
        let sender = u16::from_le_bytes(rest.array()?);
        let sender = rest.text(usize::from(sender))?;
        let method = rest.array::<1>()?[0];
        let method = rest.text(usize::from(method))?;
        let metadata = u16::from_le_bytes(rest.array()?);
        let metadata = rest.take(usize::from(metadata))?;
        Ok(Self {
            id,
            expires_ms,
            sender,
            method,
            metadata,
            body: rest.bytes,
        })
    }
}

/// A change of a message's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The message was delivered.
    Handed {
        /// Offset of the message.
        offset: u64,
        /// Number of its deliveries so far.
        deliveries: u32,
    },
    /// The message has left the mailbox: acknowledged, expired or removed.
    Left {
        /// Offset of the message.
        offset: u64,
    },
    /// The message became a dead letter.
    Dead {
        /// Offset of the message.
        offset: u64,
        /// Result of its last delivery.
        cause: Cause,
    },
    /// The dead letter was revived.
    Revived {
        /// Offset of the message.
        offset: u64,
    },
}

/// Encodes notes as one record.
pub fn encode_notes(notes: &[Note], out: &mut Vec<u8>) {
    out.reserve(notes.len() * NOTE_SIZE);
    for note in notes {
        let (offset, deliveries) = match *note {
            // Counts are capped below the marks.
            Note::Handed { offset, deliveries } => (offset, deliveries.min(REVIVED - 1)),
            Note::Left { offset } => (offset, LEFT),
            Note::Dead { offset, cause } => match cause {
                Cause::Refused => (offset, DEAD_REFUSED),
                Cause::Unanswered => (offset, DEAD_UNANSWERED),
            },
            Note::Revived { offset } => (offset, REVIVED),
        };
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&deliveries.to_le_bytes());
    }
}

/// Decodes notes.
pub fn decode_notes(bytes: &[u8]) -> impl Iterator<Item = Result<Note, Malformed>> + '_ {
    bytes.chunks(NOTE_SIZE).map(|chunk| {
        let mut rest = Rest {
            bytes: chunk,
            what: "note",
        };
        let offset = u64::from_le_bytes(rest.array()?);
        Ok(match u32::from_le_bytes(rest.array()?) {
            LEFT => Note::Left { offset },
            DEAD_REFUSED => Note::Dead {
                offset,
                cause: Cause::Refused,
            },
            DEAD_UNANSWERED => Note::Dead {
                offset,
                cause: Cause::Unanswered,
            },
            REVIVED => Note::Revived { offset },
            deliveries => Note::Handed { offset, deliveries },
        })
    })
}

/// A write that was rewritten, with its state then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved<'a> {
    /// Offset of the original write, which identifies the message.
    pub offset: u64,
    /// Time of the original write in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
    /// State of the message.
    pub state: MessageState,
    /// Bytes of its [`Write`].
    pub write: &'a [u8],
}

impl<'a> Moved<'a> {
    /// Encoded bytes before those of the write.
    pub const HEAD_SIZE: usize = 25;

    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let MessageState {
            deliveries,
            forgiven,
            dead,
        } = self.state;
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.written_ms.to_le_bytes());
        out.extend_from_slice(&deliveries.to_le_bytes());
        out.extend_from_slice(&forgiven.to_le_bytes());
        out.push(match dead {
            None => 0,
            Some(Cause::Refused) => 1,
            Some(Cause::Unanswered) => 2,
        });
        out.extend_from_slice(self.write);
    }

    /// Decodes a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let what = "write that was moved";
        let mut rest = Rest { bytes, what };
        Ok(Self {
            offset: u64::from_le_bytes(rest.array()?),
            written_ms: u64::from_le_bytes(rest.array()?),
            state: MessageState {
                deliveries: u32::from_le_bytes(rest.array()?),
                forgiven: u32::from_le_bytes(rest.array()?),
                dead: match rest.array::<1>()?[0] {
                    0 => None,
                    1 => Some(Cause::Refused),
                    2 => Some(Cause::Unanswered),
                    _ => return Err(Malformed { what }),
                },
            },
            write: rest.bytes,
        })
    }
}

/// Encodes the ids of the newest writes, oldest first, as one record.
pub fn encode_ids(ids: impl Iterator<Item = (u64, Option<WriteId>)>, out: &mut Vec<u8>) {
    for (offset, id) in ids {
        out.extend_from_slice(&offset.to_le_bytes());
        out.push(if id.is_some() { HAS_ID } else { 0 });
        out.extend_from_slice(&id.map_or([0; 16], |WriteId(id)| id));
    }
}

/// Decodes ids.
pub fn decode_ids(
    bytes: &[u8],
) -> impl Iterator<Item = Result<(u64, Option<WriteId>), Malformed>> + '_ {
    bytes.chunks(ID_SIZE).map(|chunk| {
        let mut rest = Rest {
            bytes: chunk,
            what: "list of ids",
        };
        let offset = u64::from_le_bytes(rest.array()?);
        let has_id = rest.array::<1>()?[0] & HAS_ID != 0;
        let id = WriteId(rest.array()?);
        Ok((offset, has_id.then_some(id)))
    })
}

/// The remaining bytes. Every read is bounds-checked.
struct Rest<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let what = self.what;
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or(Malformed { what })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let what = self.what;
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Malformed { what })?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn text(&mut self, length: usize) -> Result<&'a str, Malformed> {
        let what = self.what;
        std::str::from_utf8(self.take(length)?).map_err(|_| Malformed { what })
    }
}

#[cfg(test)]
mod tests;

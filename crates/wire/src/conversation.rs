//! Conversations: messages as they are appended and as they are read.
//!
//! They stand where the records of a stream stand: in the body of an APPEND, and in the answers to
//! READ and FOLLOW, where the number of a message takes the place of the offset.

use crate::cursor::{Cursor, Malformed, put_sized, put_text8, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// What `tokens` says when the author does not know.
const UNKNOWN: u32 = u32::MAX;

const ESTIMATED: u8 = 1;

/// A message that is to be appended: a record of an APPEND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMessage<'a> {
    /// What its author calls it; empty if the node is to make an id. At most 255 bytes.
    pub id: &'a str,
    /// What its author is in the conversation. At most 255 bytes.
    pub role: &'a str,
    /// Who wrote it, empty for nobody in particular. At most 65,535 bytes.
    pub from: &'a str,
    /// What it costs a model, if the author knows.
    pub tokens: Option<u32>,
    /// JSON, empty for none.
    pub metadata: &'a [u8],
    /// JSON, an array.
    pub parts: &'a [u8],
}

impl<'a> NewMessage<'a> {
    /// Reads a record of an APPEND.
    pub fn decode(record: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(record, "message");
        let tokens = Some(cursor.u32()?).filter(|tokens| *tokens != UNKNOWN);
        Ok(Self {
            tokens,
            id: cursor.text8()?,
            role: cursor.text8()?,
            from: cursor.text16()?,
            metadata: bytes32(&mut cursor)?,
            parts: cursor.rest(),
        })
    }

    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.tokens.unwrap_or(UNKNOWN).to_le_bytes());
        put(self.id, self.role, self.from, self.metadata, out);
        out.extend_from_slice(self.parts);
    }
}

/// A message that was read: a record of an EXTRACT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// How it ended: 0 as its author meant it to, 1 it was interrupted, 2 aborted, 3 stopped while
    /// it was streamed.
    pub status: u8,
    /// What it costs a model.
    pub tokens: u32,
    /// Whether that is an estimate.
    pub is_estimated: bool,
    /// What everybody calls it.
    pub id: &'a str,
    /// What its author is in the conversation.
    pub role: &'a str,
    /// Who wrote it, empty for nobody in particular.
    pub from: &'a str,
    /// JSON, empty for none.
    pub metadata: &'a [u8],
    /// JSON, an array.
    pub parts: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a record of an EXTRACT.
    pub fn decode(record: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(record, "message");
        Ok(Self {
            status: cursor.u8()?,
            is_estimated: cursor.u8()? & ESTIMATED != 0,
            tokens: cursor.u32()?,
            id: cursor.text8()?,
            role: cursor.text8()?,
            from: cursor.text16()?,
            metadata: bytes32(&mut cursor)?,
            parts: cursor.rest(),
        })
    }

    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.status);
        out.push(u8::from(self.is_estimated));
        out.extend_from_slice(&self.tokens.to_le_bytes());
        put(self.id, self.role, self.from, self.metadata, out);
        out.extend_from_slice(self.parts);
    }

    /// Appends the frame of an answer with messages, each with its number and its time in
    /// milliseconds since 1970-01-01 UTC; `flags` say whether more items follow.
    pub fn encode_extract<'m>(
        start: u64,
        next: u64,
        messages: impl Iterator<Item = (u64, u64, Message<'m>)>,
        flags: Flags,
        correlation: Correlation,
        out: &mut Vec<u8>,
    ) {
        encode_frame(out, Kind::REPLY, flags, 0, correlation, |out| {
            out.extend_from_slice(&start.to_le_bytes());
            out.extend_from_slice(&next.to_le_bytes());
            for (seq, time_ms, message) in messages {
                out.extend_from_slice(&seq.to_le_bytes());
                out.extend_from_slice(&time_ms.to_le_bytes());
                put_sized(out, |out| message.encode(out));
            }
        });
    }
}

fn put(id: &str, role: &str, from: &str, metadata: &[u8], out: &mut Vec<u8>) {
    put_text8(out, id);
    put_text8(out, role);
    put_text16(out, from);
    out.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
    out.extend_from_slice(metadata);
}

fn bytes32<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let length = cursor.u32()?;
    cursor.take(length as usize)
}

/// The payload of the REPLY to an APPEND of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedMessages<'a> {
    /// The smallest number of a message of the batch.
    pub first: u64,
    /// The largest, and one.
    pub next: u64,
    /// How many were there already.
    pub deduplicated: u32,
    /// The ids of those messages that came without one.
    pub made: MadeIds<'a>,
}

/// Ids that the node made, in the order of their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeIds<'a>(&'a [u8]);

impl<'a> MadeIds<'a> {
    /// Appends them, of at most 255 bytes each, to a buffer that is empty.
    pub fn encode<'i>(ids: impl IntoIterator<Item = &'i str>, buffer: &'a mut Vec<u8>) -> Self {
        ids.into_iter().for_each(|id| put_text8(buffer, id));
        Self(buffer)
    }

    /// Reads what was appended so: none, or some.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes, "ids of messages");
        while !cursor.is_empty() {
            cursor.text8()?;
        }
        Ok(Self(bytes))
    }

    /// Each, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut cursor = Cursor::new(self.0, "ids of messages");
        std::iter::from_fn(move || cursor.text8().ok())
    }
}

impl<'a> AppendedMessages<'a> {
    /// Reads the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "APPEND reply");
        Ok(Self {
            first: cursor.u64()?,
            next: cursor.u64()?,
            deduplicated: cursor.u32()?,
            made: MadeIds::decode(cursor.rest())?,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::REPLY, Flags::NONE, 0, correlation, |out| {
            out.extend_from_slice(&self.first.to_le_bytes());
            out.extend_from_slice(&self.next.to_le_bytes());
            out.extend_from_slice(&self.deduplicated.to_le_bytes());
            out.extend_from_slice(self.made.0);
        });
    }
}

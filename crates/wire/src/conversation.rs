//! Messages of conversations, as they are appended and read.
//!
//! They are encoded as records: in the body of an APPEND, and in the answers to READ and FOLLOW,
//! with the message's number in place of the offset.

use crate::cursor::{Cursor, Malformed, put_sized, put_text8, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Value of `tokens` if the author does not know the count.
const UNKNOWN: u32 = u32::MAX;

const ESTIMATED: u8 = 1;

/// A message to append: a record of an APPEND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMessage<'a> {
    /// Id given by the author; empty to have the node generate one. At most 255 bytes.
    pub id: &'a str,
    /// Role of the author in the conversation. At most 255 bytes.
    pub role: &'a str,
    /// Name of the author; may be empty. At most 65,535 bytes.
    pub from: &'a str,
    /// Token count, if the author knows it.
    pub tokens: Option<u32>,
    /// JSON; empty for none.
    pub metadata: &'a [u8],
    /// A JSON array.
    pub parts: &'a [u8],
}

impl<'a> NewMessage<'a> {
    /// Decodes a record of an APPEND.
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
    /// End of the message: 0 normal, 1 interrupted, 2 aborted, 3 stopped while it was
    /// streamed.
    pub status: u8,
    /// Token count.
    pub tokens: u32,
    /// True if the token count is an estimate.
    pub is_estimated: bool,
    /// Id of the message.
    pub id: &'a str,
    /// Role of the author in the conversation.
    pub role: &'a str,
    /// Name of the author; may be empty.
    pub from: &'a str,
    /// JSON; empty for none.
    pub metadata: &'a [u8],
    /// A JSON array.
    pub parts: &'a [u8],
}

impl<'a> Message<'a> {
    /// Decodes a record of an EXTRACT.
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

    /// Appends the frame of an answer with messages, each with its number and time in milliseconds
    /// since 1970-01-01 UTC. `flags` state whether more items follow.
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
    /// Lowest message number of the batch.
    pub first: u64,
    /// Highest message number of the batch, plus one.
    pub next: u64,
    /// Number of messages that had been appended before.
    pub deduplicated: u32,
    /// Generated ids of the messages that came without one.
    pub made: MadeIds<'a>,
}

/// Ids that the node generated, in the order of their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeIds<'a>(&'a [u8]);

impl<'a> MadeIds<'a> {
    /// Encodes ids of at most 255 bytes each into an empty buffer.
    pub fn encode<'i>(ids: impl IntoIterator<Item = &'i str>, buffer: &'a mut Vec<u8>) -> Self {
        ids.into_iter().for_each(|id| put_text8(buffer, id));
        Self(buffer)
    }

    /// Decodes the ids. There may be none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes, "ids of messages");
        while !cursor.is_empty() {
            cursor.text8()?;
        }
        Ok(Self(bytes))
    }

    /// Iterates over the ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut cursor = Cursor::new(self.0, "ids of messages");
        std::iter::from_fn(move || cursor.text8().ok())
    }
}

impl<'a> AppendedMessages<'a> {
    /// Decodes the payload.
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

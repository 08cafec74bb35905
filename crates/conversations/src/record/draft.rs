//! What stands in a shard's log of drafts.

use super::Malformed;
use super::bytes::{Put, Rest};
use crate::message::Status;

/// A draft was opened. The offset of this record is the draft's number, for ever, also when the
/// draft is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftOpen<'a> {
    /// The stream of the conversation's messages.
    pub conversation: u64,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub opened_ms: u64,
    /// The id of the message that it becomes.
    pub id: &'a str,
    /// What its author is in the conversation.
    pub role: &'a str,
    /// Who writes it, empty for nobody in particular.
    pub from: &'a str,
    /// Opaque.
    pub metadata: &'a [u8],
}

impl<'a> DraftOpen<'a> {
    /// Appends the record.
    ///
    /// # Panics
    /// When a piece is longer than [`crate::Limits::check`] lets in.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.conversation.to_le_bytes());
        out.extend_from_slice(&self.opened_ms.to_le_bytes());
        out.text8(self.id);
        out.text8(self.role);
        out.text16(self.from);
        out.extend_from_slice(self.metadata);
    }

    /// Reads a record back.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "opening of a draft");
        Ok(Self {
            conversation: rest.u64()?,
            opened_ms: rest.u64()?,
            id: rest.text8()?,
            role: rest.text8()?,
            from: rest.text16()?,
            metadata: rest.bytes,
        })
    }
}

/// A draft that is open was written again, so that the log before it may go: its chunks follow, from
/// the first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftCarried<'a> {
    /// Which draft.
    pub draft: u64,
    /// Its opening.
    pub open: DraftOpen<'a>,
}

impl<'a> DraftCarried<'a> {
    /// Appends the record.
    ///
    /// # Panics
    /// When a piece is longer than [`crate::Limits::check`] lets in.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.draft.to_le_bytes());
        self.open.encode(out);
    }

    /// Reads a record back.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "opening of a draft");
        Ok(Self {
            draft: rest.u64()?,
            open: DraftOpen::decode(rest.bytes)?,
        })
    }
}

/// Chunks of a draft, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftChunks<'a> {
    /// Which draft.
    pub draft: u64,
    /// The index of the first one.
    pub first: u32,
    /// The chunks, each followed by a line feed.
    pub lines: &'a [u8],
}

impl<'a> DraftChunks<'a> {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.draft.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(self.lines);
    }

    /// Reads a record back.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "chunks of a draft");
        let (draft, first) = (rest.u64()?, rest.u32()?);
        match rest.bytes.last() {
            None | Some(b'\n') => Ok(Self {
                draft,
                first,
                lines: rest.bytes,
            }),
            Some(_) => Err(rest.malformed()),
        }
    }

    /// The chunks.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let lines = self.lines.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| &line[..line.len() - 1])
    }
}

/// A draft has become a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftClose {
    /// Which draft.
    pub draft: u64,
    /// How it ended.
    pub status: Status,
    /// The message's number; 0 if none came of it because its conversation is gone.
    pub seq: u64,
}

impl DraftClose {
    /// The record's bytes.
    pub fn encode(&self) -> [u8; 17] {
        let mut bytes = [0; 17];
        bytes[..8].copy_from_slice(&self.draft.to_le_bytes());
        bytes[8] = self.status as u8;
        bytes[9..].copy_from_slice(&self.seq.to_le_bytes());
        bytes
    }

    /// Reads a record back.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = Rest::new(bytes, "end of a draft");
        let draft = rest.u64()?;
        let status = rest.u8()?;
        let close = Self {
            draft,
            status: Status::from_u8(status).ok_or(rest.malformed())?,
            seq: rest.u64()?,
        };
        rest.end()?;
        Ok(close)
    }
}

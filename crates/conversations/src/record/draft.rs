//! Records of a shard's log of drafts.

use super::Malformed;
use super::bytes::{FieldReader, Put};
use crate::message::Status;

/// The opening of a draft. The offset of this record is the draft's number, permanently: also when
/// the draft is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftOpen<'a> {
    /// The conversation, as the stream of its messages.
    pub conversation: u64,
    /// The time of the opening, in milliseconds since 1970-01-01 UTC.
    pub opened_ms: u64,
    /// The id of the message that the draft becomes.
    pub id: &'a str,
    /// The author's role.
    pub role: &'a str,
    /// The author; empty if not named.
    pub from: &'a str,
    /// The metadata, as opaque bytes.
    pub metadata: &'a [u8],
}

impl<'a> DraftOpen<'a> {
    /// Appends the record.
    ///
    /// # Panics
    /// If a field is longer than [`crate::Limits::check`] accepts.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.conversation.to_le_bytes());
        out.extend_from_slice(&self.opened_ms.to_le_bytes());
        out.text8(self.id);
        out.text8(self.role);
        out.text16(self.from);
        out.extend_from_slice(self.metadata);
    }

    /// Decodes a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "opening of a draft");
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

/// An open draft that is written again, so that earlier records can be removed. Its chunks follow,
/// starting with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftCarried<'a> {
    /// The draft's number.
    pub draft: u64,
    /// The opening of the draft.
    pub open: DraftOpen<'a>,
}

impl<'a> DraftCarried<'a> {
    /// Appends the record.
    ///
    /// # Panics
    /// If a field is longer than [`crate::Limits::check`] accepts.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.draft.to_le_bytes());
        self.open.encode(out);
    }

    /// Decodes a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "opening of a draft");
        Ok(Self {
            draft: rest.u64()?,
            open: DraftOpen::decode(rest.bytes)?,
        })
    }
}

/// Consecutive chunks of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftChunks<'a> {
    /// The draft's number.
    pub draft: u64,
    /// The index of the first chunk.
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

    /// Decodes a record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "chunks of a draft");
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

    /// Iterates over the chunks.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let lines = self.lines.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| &line[..line.len() - 1])
    }
}

/// The end of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftClose {
    /// The draft's number.
    pub draft: u64,
    /// The way it ended.
    pub status: Status,
    /// The number of the message; 0 if the conversation was removed and no message was appended.
    pub seq: u64,
}

impl DraftClose {
    /// Returns the record's bytes.
    pub fn encode(&self) -> [u8; 17] {
        let mut bytes = [0; 17];
        bytes[..8].copy_from_slice(&self.draft.to_le_bytes());
        bytes[8] = self.status as u8;
        bytes[9..].copy_from_slice(&self.seq.to_le_bytes());
        bytes
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut rest = FieldReader::new(bytes, "end of a draft");
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

//! Durable mailboxes: writes, their receipts, and deliveries.

use crate::cursor::{Cursor, Malformed};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// The prefix of the body of a WRITE with [`Flags::KEYED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Id given by the writer; a retry has the same one.
    pub id: [u8; 16],
    /// Time to live in the mailbox, in milliseconds; 0 for the node's default.
    pub ttl_ms: u32,
}

impl Key {
    /// Encoded size in bytes.
    pub const SIZE: usize = 20;

    /// Splits the prefix from the body after it.
    pub fn split(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut cursor = Cursor::new(body, "WRITE");
        let key = Self {
            id: cursor.array()?,
            ttl_ms: cursor.u32()?,
        };
        Ok((key, cursor.rest()))
    }

    /// Encodes the prefix.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..16].copy_from_slice(&self.id);
        bytes[16..].copy_from_slice(&self.ttl_ms.to_le_bytes());
        bytes
    }
}

/// The payload of the REPLY to a durable WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Offset in the mailbox.
    pub offset: u64,
    /// True if the write was a retry of a stored one.
    pub is_duplicate: bool,
}

impl Stored {
    /// Decodes the payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "WRITE reply");
        Ok(Self {
            offset: cursor.u64()?,
            is_duplicate: cursor.u8()? & 1 != 0,
        })
    }

    /// Appends the frame.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::REPLY, Flags::NONE, 0, correlation, |out| {
            out.extend_from_slice(&self.offset.to_le_bytes());
            out.push(u8::from(self.is_duplicate));
        });
    }
}

/// The prefix of the body of a REQUEST with [`Flags::WRITTEN`], which delivers a message of a
/// mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Offset in the mailbox.
    pub offset: u64,
    /// Number of this delivery, from 1.
    pub delivery: u32,
    /// Time of the write in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
}

impl Delivery {
    /// Encoded size in bytes.
    pub const SIZE: usize = 20;

    /// Splits the prefix from the body after it.
    pub fn split(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut cursor = Cursor::new(body, "REQUEST");
        let delivery = Self {
            offset: cursor.u64()?,
            delivery: cursor.u32()?,
            written_ms: cursor.u64()?,
        };
        Ok((delivery, cursor.rest()))
    }

    /// Encodes the prefix.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.delivery.to_le_bytes());
        bytes[12..].copy_from_slice(&self.written_ms.to_le_bytes());
        bytes
    }
}

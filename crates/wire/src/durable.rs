//! What is on disk: writes to a mailbox, their receipts, and their deliveries.

use crate::cursor::{Cursor, Malformed};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// What stands before the body of a WRITE with [`Flags::KEYED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// What the writer calls it: a retry carries the same.
    pub id: [u8; 16],
    /// How long it may wait in the mailbox, in milliseconds; 0 for as long as the node says.
    pub ttl_ms: u32,
}

impl Key {
    /// Bytes it takes.
    pub const SIZE: usize = 20;

    /// Splits it from the body behind it.
    pub fn split(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut cursor = Cursor::new(body, "WRITE");
        let key = Self {
            id: cursor.array()?,
            ttl_ms: cursor.u32()?,
        };
        Ok((key, cursor.rest()))
    }

    /// As it stands there.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..16].copy_from_slice(&self.id);
        bytes[16..].copy_from_slice(&self.ttl_ms.to_le_bytes());
        bytes
    }
}

/// The payload of the REPLY to a WRITE that is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where it lies in the mailbox.
    pub offset: u64,
    /// It was there already: this was a retry.
    pub is_duplicate: bool,
}

impl Stored {
    /// Reads the payload.
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

/// What stands before the body of a REQUEST with [`Flags::WRITTEN`]: it delivers what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Where it lies in the mailbox.
    pub offset: u64,
    /// How often it is delivered with this time, from 1.
    pub delivery: u32,
    /// When it was written, in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
}

impl Delivery {
    /// Bytes it takes.
    pub const SIZE: usize = 20;

    /// Splits it from the body behind it.
    pub fn split(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut cursor = Cursor::new(body, "REQUEST");
        let delivery = Self {
            offset: cursor.u64()?,
            delivery: cursor.u32()?,
            written_ms: cursor.u64()?,
        };
        Ok((delivery, cursor.rest()))
    }

    /// As it stands there.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.delivery.to_le_bytes());
        bytes[12..].copy_from_slice(&self.written_ms.to_le_bytes());
        bytes
    }
}

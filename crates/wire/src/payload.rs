//! Payload of REQUEST, REPLY, SEND and WRITE: deadline, metadata and body.

use crate::cursor::{Cursor, Malformed};
use crate::header::{Correlation, Flags, HEADER_SIZE, Header, Kind};

/// The parts of a message's payload, in their encoded order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload<'a> {
    /// Remaining time in milliseconds.
    pub deadline_ms: Option<u32>,
    /// Metadata entries without the block's length; empty for none. At most 65,535 bytes.
    pub metadata: &'a [u8],
    /// The body: opaque bytes.
    pub body: &'a [u8],
}

impl<'a> Payload<'a> {
    /// Creates a payload with a body only.
    pub const fn body(body: &'a [u8]) -> Self {
        Self {
            deadline_ms: None,
            metadata: &[],
            body,
        }
    }

    /// Splits a payload according to the frame's flags.
    #[inline]
    pub fn decode(flags: Flags, payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "message");
        let deadline_ms = match flags.contains(Flags::DEADLINE) {
            true => Some(cursor.u32()?),
            false => None,
        };
        let metadata = match flags.contains(Flags::METADATA) {
            true => {
                let length = cursor.u16()?;
                cursor.take(usize::from(length))?
            }
            false => &[],
        };
        Ok(Self {
            deadline_ms,
            metadata,
            body: cursor.rest(),
        })
    }

    /// Appends the same frame as [`Payload::encode`], with `prefix` before the body.
    pub fn encode_prefixed(
        &self,
        prefix: &[u8],
        kind: Kind,
        flags: Flags,
        route: u16,
        correlation: Correlation,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.reserve(HEADER_SIZE + prefix.len() + self.metadata.len() + self.body.len() + 6);
        let head = Payload {
            deadline_ms: self.deadline_ms,
            metadata: self.metadata,
            body: prefix,
        };
        head.encode(kind, flags, route, correlation, out);
        out.extend_from_slice(self.body);
        let length = (out.len() - start - HEADER_SIZE) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Appends the frame. `flags` are the ones that the parts do not imply.
    #[inline]
    pub fn encode(
        &self,
        kind: Kind,
        flags: Flags,
        route: u16,
        correlation: Correlation,
        out: &mut Vec<u8>,
    ) {
        let metadata = &self.metadata[..self.metadata.len().min(usize::from(u16::MAX))];
        let mut flags = flags;
        let mut length = self.body.len();
        if self.deadline_ms.is_some() {
            flags = flags | Flags::DEADLINE;
            length += 4;
        }
        if !metadata.is_empty() {
            flags = flags | Flags::METADATA;
            length += 2 + metadata.len();
        }
        out.reserve(HEADER_SIZE + length);
        let header = Header {
            length: length as u32,
            kind,
            flags,
            route,
            correlation,
        }
        .encode();
        match self.deadline_ms {
            None => out.extend_from_slice(&header),
            Some(deadline_ms) => {
                let mut head = [0; HEADER_SIZE + 4];
                head[..HEADER_SIZE].copy_from_slice(&header);
                head[HEADER_SIZE..].copy_from_slice(&deadline_ms.to_le_bytes());
                out.extend_from_slice(&head);
            }
        }
        if !metadata.is_empty() {
            out.extend_from_slice(&(metadata.len() as u16).to_le_bytes());
            out.extend_from_slice(metadata);
        }
        out.extend_from_slice(self.body);
    }
}

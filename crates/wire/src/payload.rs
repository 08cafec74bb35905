//! What REQUEST, REPLY, SEND and WRITE carry: a deadline, metadata, a body.

use crate::cursor::{Cursor, Malformed};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// The parts of a message's payload, in the order in which they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload<'a> {
    /// Time that remains, in milliseconds.
    pub deadline_ms: Option<u32>,
    /// Metadata entries, without the block's length; empty for none. At most 65,535 bytes.
    pub metadata: &'a [u8],
    /// Opaque bytes.
    pub body: &'a [u8],
}

impl<'a> Payload<'a> {
    /// Only a body.
    pub const fn body(body: &'a [u8]) -> Self {
        Self {
            deadline_ms: None,
            metadata: &[],
            body,
        }
    }

    /// Splits a payload by the frame's flags.
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

    /// Appends the frame; `flags` are those that the parts do not imply.
    pub fn encode(
        &self,
        kind: Kind,
        flags: Flags,
        route: u16,
        correlation: Correlation,
        out: &mut Vec<u8>,
    ) {
        let mut flags = flags;
        if self.deadline_ms.is_some() {
            flags = flags | Flags::DEADLINE;
        }
        if !self.metadata.is_empty() {
            flags = flags | Flags::METADATA;
        }
        encode_frame(out, kind, flags, route, correlation, |out| {
            if let Some(deadline_ms) = self.deadline_ms {
                out.extend_from_slice(&deadline_ms.to_le_bytes());
            }
            if !self.metadata.is_empty() {
                let length = self.metadata.len().min(usize::from(u16::MAX));
                out.extend_from_slice(&(length as u16).to_le_bytes());
                out.extend_from_slice(&self.metadata[..length]);
            }
            out.extend_from_slice(self.body);
        });
    }
}

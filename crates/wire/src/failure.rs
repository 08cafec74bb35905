//! How a failure travels.

use model::ErrorCode;

use crate::cursor::{Cursor, Malformed, cut, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Bytes of an error message that travel; longer ones are cut.
pub const MESSAGE_LENGTH_MAX: usize = 1024;

/// Bytes of details that travel; longer ones are left out.
pub const DETAILS_SIZE_MAX: usize = 64 << 10;

/// The payload of an ERROR frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// What went wrong.
    pub code: ErrorCode,
    /// Whether the request was handed on to a responder before it failed.
    pub sent: bool,
    /// Milliseconds after which another try makes sense, 0 when nothing is known.
    pub retry_after_ms: u32,
    /// For people.
    pub message: &'a str,
    /// For programs: bytes that a handler attached.
    pub details: &'a [u8],
}

impl<'a> Failure<'a> {
    /// A failure of that kind with that message and nothing else.
    pub const fn new(code: ErrorCode, message: &'a str) -> Self {
        Self {
            code,
            sent: false,
            retry_after_ms: 0,
            message,
            details: &[],
        }
    }

    /// Reads an ERROR payload. A code of a newer version reads as `internal`.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(payload, "ERROR");
        Ok(Self {
            code: ErrorCode::from_u16(cursor.u16()?).unwrap_or(ErrorCode::Internal),
            sent: cursor.u8()? & 1 != 0,
            retry_after_ms: cursor.u32()?,
            message: cursor.text16()?,
            details: cursor.rest(),
        })
    }

    /// Appends the frame; correlation [`Correlation::NONE`] concerns the whole connection.
    pub fn encode(&self, correlation: Correlation, out: &mut Vec<u8>) {
        encode_frame(out, Kind::ERROR, Flags::NONE, 0, correlation, |out| {
            out.extend_from_slice(&self.code.as_u16().to_le_bytes());
            out.push(u8::from(self.sent));
            out.extend_from_slice(&self.retry_after_ms.to_le_bytes());
            put_text16(out, cut(self.message, MESSAGE_LENGTH_MAX));
            if self.details.len() <= DETAILS_SIZE_MAX {
                out.extend_from_slice(self.details);
            }
        });
    }
}

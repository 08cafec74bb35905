//! ERROR payloads.

use model::ErrorCode;

use crate::cursor::{Cursor, Malformed, cut, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Limit on the encoded error message, in bytes; longer ones are cut.
pub const MESSAGE_LENGTH_MAX: usize = 1024;

/// Limit on the encoded details, in bytes; larger ones are left out.
pub const DETAILS_SIZE_MAX: usize = 64 << 10;

/// The payload of an ERROR frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The error code.
    pub code: ErrorCode,
    /// True if the request was forwarded to a responder before it failed.
    pub sent: bool,
    /// Milliseconds after which a retry makes sense; 0 if unknown.
    pub retry_after_ms: u32,
    /// A message for people.
    pub message: &'a str,
    /// Bytes for programs, attached by a handler.
    pub details: &'a [u8],
}

impl<'a> Failure<'a> {
    /// Creates a failure with a code and a message only.
    pub const fn new(code: ErrorCode, message: &'a str) -> Self {
        Self {
            code,
            sent: false,
            retry_after_ms: 0,
            message,
            details: &[],
        }
    }

    /// Decodes an ERROR payload. A code of a newer version decodes as `internal`.
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

    /// Appends the frame. With [`Correlation::NONE`] it concerns the whole connection.
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

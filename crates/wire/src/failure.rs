//! ERROR payloads.

use model::{ErrorCode, Failure};

use crate::cursor::{Cursor, Malformed, cut, put_text16};
use crate::header::{Correlation, Flags, Kind, encode_frame};

/// Limit on the encoded error message, in bytes; longer ones are cut.
pub const MESSAGE_LENGTH_MAX: usize = 1024;

/// Limit on the encoded details, in bytes; larger ones are left out.
pub const DETAILS_SIZE_MAX: usize = 64 << 10;

/// Decodes an ERROR payload. A code of a newer version decodes as `internal`.
pub fn decode_failure(payload: &[u8]) -> Result<Failure<'_>, Malformed> {
    let mut cursor = Cursor::new(payload, "ERROR");
    Ok(Failure {
        code: ErrorCode::from_u16(cursor.u16()?).unwrap_or(ErrorCode::Internal),
        sent: cursor.u8()? & 1 != 0,
        retry_after_ms: cursor.u32()?,
        message: cursor.text16()?,
        details: cursor.rest(),
    })
}

/// Appends an ERROR frame. With [`Correlation::NONE`] it concerns the whole connection.
pub fn encode_failure(failure: &Failure<'_>, correlation: Correlation, out: &mut Vec<u8>) {
    encode_frame(out, Kind::ERROR, Flags::NONE, 0, correlation, |out| {
        out.extend_from_slice(&failure.code.as_u16().to_le_bytes());
        out.push(u8::from(failure.sent));
        out.extend_from_slice(&failure.retry_after_ms.to_le_bytes());
        put_text16(out, cut(failure.message, MESSAGE_LENGTH_MAX));
        if failure.details.len() <= DETAILS_SIZE_MAX {
            out.extend_from_slice(failure.details);
        }
    });
}

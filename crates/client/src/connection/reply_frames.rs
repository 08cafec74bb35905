//! Frames and errors of replies that handlers and envelopes share.

use model::ErrorCode;
use wire::{Correlation, Flags, HEADER_SIZE, Kind, Payload};

use crate::Fault;

/// Error for a body above the caller's size limit.
pub(crate) fn too_large(what: &str, size: usize, limit: u32) -> Fault {
    let message = format!("{what} of {size} bytes is above the caller's limit of {limit}");
    Fault::with_code(ErrorCode::TooLarge, message)
}

/// Appends the reply of a handler that does not stream to a caller that expects a stream: one item
/// and the end.
pub(crate) fn encode_only_item(item: &[u8], correlation: Correlation, out: &mut Vec<u8>) {
    out.reserve(2 * HEADER_SIZE + item.len());
    Payload::body(item).encode(Kind::REPLY, Flags::MORE, 0, correlation, out);
    Payload::body(&[]).encode(Kind::REPLY, Flags::NONE, 0, correlation, out);
}

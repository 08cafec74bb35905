//! The failure of a request, as it is sent from peer to peer.

use crate::ErrorCode;

/// The failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The error code.
    pub code: ErrorCode,
    /// True if a responder was sent the request before it failed.
    pub sent: bool,
    /// Milliseconds after which a retry is useful; 0 if unknown.
    pub retry_after_ms: u32,
    /// The text for users.
    pub message: &'a str,
    /// Bytes for programs, attached by a handler or by the node.
    pub details: &'a [u8],
}

impl<'a> Failure<'a> {
    /// Returns a failure before a responder was sent the request.
    pub const fn new(code: ErrorCode, message: &'a str) -> Self {
        Self {
            code,
            sent: false,
            retry_after_ms: 0,
            message,
            details: &[],
        }
    }

    /// Returns the failure for a request that a responder was sent.
    pub const fn after_sending(self) -> Self {
        Self { sent: true, ..self }
    }
}

//! Errors that end a connection.

use model::ErrorCode;
use wire::Malformed;

/// A protocol violation: the client gets this error, and the connection ends.
pub(super) struct Fatal {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl From<Malformed> for Fatal {
    fn from(malformed: Malformed) -> Self {
        protocol(malformed.to_string())
    }
}

/// Returns the error of a client that violated the protocol.
pub(super) fn protocol(message: impl Into<String>) -> Fatal {
    Fatal {
        code: ErrorCode::Protocol,
        message: message.into(),
    }
}

//! SaslAuthenticate: one step of the authentication exchange.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Secret;

message! {
    /// Message of the client.
    struct Request {
        auth_bytes: Secret,
    }

    /// Message of the broker.
    struct Response {
        error_code: ErrorCode,
        error_message: Option<String>,
        auth_bytes: Secret,
        session_lifetime_ms: i64 [1..],
    }
}

//! A step of the mechanism's exchange.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Secret;

message! {
    /// What the client says.
    struct Request {
        auth_bytes: Secret,
    }

    /// What the broker says.
    struct Response {
        error_code: ErrorCode,
        error_message: Option<String>,
        auth_bytes: Secret,
        session_lifetime_ms: i64 [1..],
    }
}

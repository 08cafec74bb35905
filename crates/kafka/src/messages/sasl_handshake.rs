//! SaslHandshake: selects the SASL mechanism.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// The mechanism.
    struct Request {
        mechanism: String,
    }

    /// Error code, and the supported mechanisms.
    struct Response {
        error_code: ErrorCode,
        mechanisms: Vec<String>,
    }
}

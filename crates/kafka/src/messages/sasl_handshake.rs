//! Which mechanism a client is going to prove itself by.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// The mechanism.
    struct Request {
        mechanism: String,
    }

    /// Whether it is offered, and what else is.
    struct Response {
        error_code: ErrorCode,
        mechanisms: Vec<String>,
    }
}

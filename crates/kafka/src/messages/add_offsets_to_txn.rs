//! A group whose offsets a transaction is going to commit.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which transaction and group.
    struct Request {
        transactional_id: String,
        producer_id: i64,
        producer_epoch: i16,
        group_id: String,
    }

    /// Whether it may.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
    }
}

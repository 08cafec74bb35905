//! The end of a transaction.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which transaction, and whether it is committed.
    struct Request {
        transactional_id: String,
        producer_id: i64,
        producer_epoch: i16,
        committed: bool,
    }

    /// Whether it has ended; from version 5 on, the epoch that follows.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        producer_id: i64 [5..] = -1,
        producer_epoch: i16 [5..] = -1,
    }
}

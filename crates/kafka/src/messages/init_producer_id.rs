//! A number for a producer, by which its duplicates are known; with a transactional id, the end of
//! whoever had that before.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Who asks.
    struct Request {
        transactional_id: Option<String>,
        transaction_timeout_ms: i32,
        producer_id: i64 [3..] = -1,
        producer_epoch: i16 [3..] = -1,
    }

    /// The number and its epoch.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        producer_id: i64 = -1,
        producer_epoch: i16,
    }
}

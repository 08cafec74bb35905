//! EndTxn: commits or aborts a transaction.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Transaction, and true to commit it.
    struct Request {
        transactional_id: String,
        producer_id: i64,
        producer_epoch: i16,
        committed: bool,
    }

    /// Error code; from version 5 on also the next epoch of the producer.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        producer_id: i64 [5..] = -1,
        producer_epoch: i16 [5..] = -1,
    }
}

//! AddOffsetsToTxn: adds a consumer group to a transaction that will commit its offsets.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Transaction and group.
    struct Request {
        transactional_id: String,
        producer_id: i64,
        producer_epoch: i16,
        group_id: String,
    }

    /// Error code.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
    }
}

//! InitProducerId: assigns a producer id for deduplication. With a transactional id it also fences
//! the previous producer.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Transactional id and current producer id.
    struct Request {
        transactional_id: Option<String>,
        transaction_timeout_ms: i32,
        producer_id: i64 [3..] = -1,
        producer_epoch: i16 [3..] = -1,
    }

    /// Producer id and epoch.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        producer_id: i64 = -1,
        producer_epoch: i16,
    }
}

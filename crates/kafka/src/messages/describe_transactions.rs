//! Transactions with their partitions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which transactions.
    struct Request {
        transactional_ids: Vec<String>,
    }

    /// Each transaction.
    struct Response {
        throttle_time_ms: i32,
        transaction_states: Vec<Transaction>,
    }

    /// A transaction, since when it has been open and for how long it may be.
    struct Transaction {
        error_code: ErrorCode,
        transactional_id: String,
        transaction_state: String,
        transaction_timeout_ms: i32,
        transaction_start_time_ms: i64,
        producer_id: i64,
        producer_epoch: i16,
        topics: Vec<Topic>,
    }

    /// Partitions that it has written to.
    struct Topic {
        topic: String,
        partitions: Vec<i32>,
    }
}

//! DescribeTransactions: state and partitions of transactions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Transactional ids.
    struct Request {
        transactional_ids: Vec<String>,
    }

    /// Result for each transaction.
    struct Response {
        throttle_time_ms: i32,
        transaction_states: Vec<Transaction>,
    }

    /// A transaction with its start time and timeout.
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

    /// Partitions of a topic in the transaction.
    struct Topic {
        topic: String,
        partitions: Vec<i32>,
    }
}

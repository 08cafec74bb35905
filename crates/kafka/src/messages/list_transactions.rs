//! ListTransactions: lists transactions, optionally by state.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Filter.
    struct Request {
        state_filters: Vec<String>,
        producer_id_filters: Vec<i64>,
        duration_filter: i64 [1..] = -1,
        transactional_id_pattern: Option<String> [2..],
    }

    /// Matching transactions.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        unknown_state_filters: Vec<String>,
        transaction_states: Vec<Transaction>,
    }

    /// A transaction with its state.
    struct Transaction {
        transactional_id: String,
        producer_id: i64,
        transaction_state: String,
    }
}

//! Partitions that a transaction is going to write to: those of one transaction up to version 3,
//! which is what producers ask in; from then on those of many, as brokers ask each other.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Partitions by transaction.
    struct Request {
        transactions: Vec<Transaction> [4..],
        v3_and_below_transactional_id: String [..=3],
        v3_and_below_producer_id: i64 [..=3],
        v3_and_below_producer_epoch: i16 [..=3],
        v3_and_below_topics: Vec<Topic> [..=3],
    }

    /// Partitions of a transaction.
    struct Transaction {
        transactional_id: String,
        producer_id: i64,
        producer_epoch: i16,
        verify_only: bool,
        topics: Vec<Topic>,
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partitions: Vec<i32>,
    }

    /// What became of each partition.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode [4..],
        results_by_transaction: Vec<TransactionResponse> [4..],
        results_by_topic_v3_and_below: Vec<TopicResponse> [..=3],
    }

    /// The answer for a transaction.
    struct TransactionResponse {
        transactional_id: String,
        topic_results: Vec<TopicResponse>,
    }

    /// The answer for a topic.
    struct TopicResponse {
        name: String,
        results_by_partition: Vec<PartitionResponse>,
    }

    /// The answer for a partition.
    struct PartitionResponse {
        partition_index: i32,
        partition_error_code: ErrorCode,
    }
}

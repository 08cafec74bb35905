//! AddPartitionsToTxn: adds partitions to a transaction. Versions up to 3 are for producers and
//! have one transaction; later versions are for brokers and have several.

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

    /// Result for each partition.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode [4..],
        results_by_transaction: Vec<TransactionResponse> [4..],
        results_by_topic_v3_and_below: Vec<TopicResponse> [..=3],
    }

    /// Result for a transaction.
    struct TransactionResponse {
        transactional_id: String,
        topic_results: Vec<TopicResponse>,
    }

    /// Result for a topic.
    struct TopicResponse {
        name: String,
        results_by_partition: Vec<PartitionResponse>,
    }

    /// Result for a partition.
    struct PartitionResponse {
        partition_index: i32,
        partition_error_code: ErrorCode,
    }
}

//! DescribeProducers: active producers of partitions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Partitions.
    struct Request {
        topics: Vec<Topic>,
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partition_indexes: Vec<i32>,
    }

    /// Producers by partition.
    struct Response {
        throttle_time_ms: i32,
        topics: Vec<TopicResponse>,
    }

    /// Result for a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// Result for a partition.
    struct PartitionResponse {
        partition_index: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        active_producers: Vec<Producer>,
    }

    /// A producer with its last sequence number and timestamp.
    struct Producer {
        producer_id: i64,
        producer_epoch: i32,
        last_sequence: i32 = -1,
        last_timestamp: i64 = -1,
        coordinator_epoch: i32,
        current_txn_start_offset: i64 = -1,
    }
}

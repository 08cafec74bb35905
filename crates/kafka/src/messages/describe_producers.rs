//! Producers whose numbers a partition remembers.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which partitions.
    struct Request {
        topics: Vec<Topic>,
    }

    /// What is asked of a topic.
    struct Topic {
        name: String,
        partition_indexes: Vec<i32>,
    }

    /// The producers of each.
    struct Response {
        throttle_time_ms: i32,
        topics: Vec<TopicResponse>,
    }

    /// The answer for a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// The answer for a partition.
    struct PartitionResponse {
        partition_index: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        active_producers: Vec<Producer>,
    }

    /// A producer, and what it wrote last.
    struct Producer {
        producer_id: i64,
        producer_epoch: i32,
        last_sequence: i32 = -1,
        last_timestamp: i64 = -1,
        coordinator_epoch: i32,
        current_txn_start_offset: i64 = -1,
    }
}

//! Partitions that are being moved to other brokers.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Partitions that are asked about; null means all of them.
    struct Request {
        timeout_ms: i32 = 60_000,
        topics: Option<Vec<Topic>>,
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partition_indexes: Vec<i32>,
    }

    /// Moves that are under way.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        topics: Vec<TopicResponse>,
    }

    /// Partitions of a topic that are being moved.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// The move of a partition.
    struct PartitionResponse {
        partition_index: i32,
        replicas: Vec<i32>,
        adding_replicas: Vec<i32>,
        removing_replicas: Vec<i32>,
    }
}

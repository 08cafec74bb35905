//! ListPartitionReassignments: lists partitions that are being moved to other brokers.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Partitions; null means all.
    struct Request {
        timeout_ms: i32 = 60_000,
        topics: Option<Vec<Topic>>,
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partition_indexes: Vec<i32>,
    }

    /// Moves in progress.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        topics: Vec<TopicResponse>,
    }

    /// Moving partitions of a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// Replicas of a moving partition.
    struct PartitionResponse {
        partition_index: i32,
        replicas: Vec<i32>,
        adding_replicas: Vec<i32>,
        removing_replicas: Vec<i32>,
    }
}

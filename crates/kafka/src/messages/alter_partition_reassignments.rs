//! AlterPartitionReassignments: moves partitions to other brokers.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Partitions to move.
    struct Request {
        timeout_ms: i32 = 60_000,
        allow_replication_factor_change: bool [1..] = true,
        topics: Vec<Topic>,
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// Target brokers of a partition; null cancels a move.
    struct Partition {
        partition_index: i32,
        replicas: Option<Vec<i32>>,
    }

    /// Result for each topic.
    struct Response {
        throttle_time_ms: i32,
        allow_replication_factor_change: bool [1..] = true,
        error_code: ErrorCode,
        error_message: Option<String>,
        responses: Vec<TopicResponse>,
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
    }
}

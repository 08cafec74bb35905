//! OffsetDelete: deletes committed offsets of a group.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Group and partitions.
    struct Request {
        group_id: String,
        topics: Vec<Topic>,
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// A partition.
    struct Partition {
        partition_index: i32,
    }

    /// Result for each partition.
    struct Response {
        error_code: ErrorCode,
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
    }
}

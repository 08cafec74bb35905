//! Offsets of a group to forget.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which partitions.
    struct Request {
        group_id: String,
        topics: Vec<Topic>,
    }

    /// What is asked of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// What is asked of a partition.
    struct Partition {
        partition_index: i32,
    }

    /// What became of each offset.
    struct Response {
        error_code: ErrorCode,
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
    }
}

//! Records to delete from the start of partitions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Up to which offset; -1 is the end.
    struct Request {
        topics: Vec<Topic>,
        timeout_ms: i32,
    }

    /// What is asked of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// What is asked of a partition.
    struct Partition {
        partition_index: i32,
        offset: i64,
    }

    /// Where each partition starts now.
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
        low_watermark: i64,
        error_code: ErrorCode,
    }
}

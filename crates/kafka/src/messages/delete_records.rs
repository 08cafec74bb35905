//! DeleteRecords: deletes records from the start of partitions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Offsets before which records are deleted; -1 is the end.
    struct Request {
        topics: Vec<Topic>,
        timeout_ms: i32,
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// Offset for a partition.
    struct Partition {
        partition_index: i32,
        offset: i64,
    }

    /// New log start offset of each partition.
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
        low_watermark: i64,
        error_code: ErrorCode,
    }
}

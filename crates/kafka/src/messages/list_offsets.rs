//! ListOffsets: offsets by timestamp, or start and end of a partition.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Timestamps by partition: -1 is the end, -2 the start, -3 the record with the highest
    /// timestamp.
    struct Request {
        replica_id: i32,
        isolation_level: i8 [2..],
        topics: Vec<Topic>,
        timeout_ms: i32 [10..],
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// Timestamp for a partition.
    struct Partition {
        partition_index: i32,
        current_leader_epoch: i32 [4..] = -1,
        timestamp: i64,
    }

    /// Offset for each partition.
    struct Response {
        throttle_time_ms: i32 [2..],
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
        timestamp: i64 = -1,
        offset: i64 = -1,
        leader_epoch: i32 [4..] = -1,
    }
}

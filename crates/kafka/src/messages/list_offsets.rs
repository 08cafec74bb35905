//! Offsets by timestamp, or at either end of a partition.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// A timestamp for each partition: -1 is the end, -2 the start, -3 the highest timestamp.
    struct Request {
        replica_id: i32,
        isolation_level: i8 [2..],
        topics: Vec<Topic>,
        timeout_ms: i32 [10..],
    }

    /// What is asked of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// Which timestamp is looked for.
    struct Partition {
        partition_index: i32,
        current_leader_epoch: i32 [4..] = -1,
        timestamp: i64,
    }

    /// An offset for each partition.
    struct Response {
        throttle_time_ms: i32 [2..],
        topics: Vec<TopicResponse>,
    }

    /// The answer for a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// What was found.
    struct PartitionResponse {
        partition_index: i32,
        error_code: ErrorCode,
        timestamp: i64 = -1,
        offset: i64 = -1,
        leader_epoch: i32 [4..] = -1,
    }
}

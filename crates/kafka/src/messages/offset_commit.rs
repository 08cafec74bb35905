//! How far a group has read.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Offsets by partition.
    struct Request {
        group_id: String,
        generation_id_or_member_epoch: i32 = -1,
        member_id: String,
        group_instance_id: Option<String> [7..],
        retention_time_ms: i64 [..=4] = -1,
        topics: Vec<Topic>,
    }

    /// What is asked of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// The next offset to read, and what the consumer notes beside it.
    struct Partition {
        partition_index: i32,
        committed_offset: i64,
        committed_leader_epoch: i32 [6..] = -1,
        committed_metadata: Option<String>,
    }

    /// What became of each offset.
    struct Response {
        throttle_time_ms: i32 [3..],
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

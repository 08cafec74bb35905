//! OffsetCommit: commits offsets of a group.

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

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partitions: Vec<Partition>,
    }

    /// Next offset to read, with metadata of the consumer.
    struct Partition {
        partition_index: i32,
        committed_offset: i64,
        committed_leader_epoch: i32 [6..] = -1,
        committed_metadata: Option<String>,
    }

    /// Result for each partition.
    struct Response {
        throttle_time_ms: i32 [3..],
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

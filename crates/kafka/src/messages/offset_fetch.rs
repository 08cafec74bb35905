//! OffsetFetch: committed offsets; one group up to version 7, several in later versions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Groups and partitions; null partitions mean all.
    struct Request {
        group_id: String [..=7],
        topics: Option<Vec<Topic>> [..=7, null 2..] = Some(Vec::new()),
        groups: Vec<Group> [8..],
        require_stable: bool [7..],
    }

    /// Partitions of a topic.
    struct Topic {
        name: String,
        partition_indexes: Vec<i32>,
    }

    /// Partitions of a group.
    struct Group {
        group_id: String,
        member_id: Option<String> [9..],
        member_epoch: i32 [9..] = -1,
        topics: Option<Vec<Topic>>,
    }

    /// Committed offsets by partition.
    struct Response {
        throttle_time_ms: i32 [3..],
        topics: Vec<TopicResponse> [..=7],
        error_code: ErrorCode [2..=7],
        groups: Vec<GroupResponse> [8..],
    }

    /// Result for a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// Result for a partition.
    struct PartitionResponse {
        partition_index: i32,
        committed_offset: i64,
        committed_leader_epoch: i32 [5..] = -1,
        metadata: Option<String>,
        error_code: ErrorCode,
    }

    /// Result for a group.
    struct GroupResponse {
        group_id: String,
        topics: Vec<TopicResponse>,
        error_code: ErrorCode,
    }
}

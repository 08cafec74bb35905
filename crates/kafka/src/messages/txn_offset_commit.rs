//! TxnOffsetCommit: commits offsets of a group as part of a transaction.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Offsets by partition.
    struct Request {
        transactional_id: String,
        group_id: String,
        producer_id: i64,
        producer_epoch: i16,
        generation_id: i32 [3..] = -1,
        member_id: String [3..],
        group_instance_id: Option<String> [3..],
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
        committed_leader_epoch: i32 [2..] = -1,
        committed_metadata: Option<String>,
    }

    /// Result for each partition.
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
        error_code: ErrorCode,
    }
}

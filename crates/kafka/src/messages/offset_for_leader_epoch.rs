//! OffsetForLeaderEpoch: end offset of a leader epoch, by which consumers detect a truncated log.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Leader epochs by partition.
    struct Request {
        replica_id: i32 [3..] = -2,
        topics: Vec<Topic>,
    }

    /// Partitions of a topic.
    struct Topic {
        topic: String,
        partitions: Vec<Partition>,
    }

    /// Leader epoch for a partition.
    struct Partition {
        partition: i32,
        current_leader_epoch: i32 = -1,
        leader_epoch: i32,
    }

    /// End offsets by partition.
    struct Response {
        throttle_time_ms: i32,
        topics: Vec<TopicResponse>,
    }

    /// Result for a topic.
    struct TopicResponse {
        topic: String,
        partitions: Vec<EpochEnd>,
    }

    /// End offset of the epoch.
    struct EpochEnd {
        error_code: ErrorCode,
        partition: i32,
        leader_epoch: i32 = -1,
        end_offset: i64 = -1,
    }
}

//! Where an epoch of a leader ended: how a consumer notices that a log was cut.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// An epoch for each partition.
    struct Request {
        replica_id: i32 [3..] = -2,
        topics: Vec<Topic>,
    }

    /// What is asked of a topic.
    struct Topic {
        topic: String,
        partitions: Vec<Partition>,
    }

    /// Which epoch is looked for.
    struct Partition {
        partition: i32,
        current_leader_epoch: i32 = -1,
        leader_epoch: i32,
    }

    /// An offset for each partition.
    struct Response {
        throttle_time_ms: i32,
        topics: Vec<TopicResponse>,
    }

    /// The answer for a topic.
    struct TopicResponse {
        topic: String,
        partitions: Vec<EpochEnd>,
    }

    /// Where the epoch ended.
    struct EpochEnd {
        error_code: ErrorCode,
        partition: i32,
        leader_epoch: i32 = -1,
        end_offset: i64 = -1,
    }
}

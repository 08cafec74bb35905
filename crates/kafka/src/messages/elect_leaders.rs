//! Elections of partition leaders.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Partitions of which a leader is to be elected; null means all of them.
    struct Request {
        election_type: i8 [1..],
        topic_partitions: Option<Vec<TopicPartitions>>,
        timeout_ms: i32 = 60_000,
    }

    /// Partitions of a topic.
    struct TopicPartitions {
        topic: String,
        partitions: Vec<i32>,
    }

    /// The outcome for each topic.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode [1..],
        replica_election_results: Vec<TopicResponse>,
    }

    /// The answer for a topic.
    struct TopicResponse {
        topic: String,
        partition_result: Vec<PartitionResponse>,
    }

    /// The answer for a partition.
    struct PartitionResponse {
        partition_id: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
    }
}

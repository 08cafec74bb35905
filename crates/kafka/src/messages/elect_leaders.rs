//! ElectLeaders: elects leaders of partitions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Partitions; null means all.
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

    /// Result for each topic.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode [1..],
        replica_election_results: Vec<TopicResponse>,
    }

    /// Result for a topic.
    struct TopicResponse {
        topic: String,
        partition_result: Vec<PartitionResponse>,
    }

    /// Result for a partition.
    struct PartitionResponse {
        partition_id: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
    }
}

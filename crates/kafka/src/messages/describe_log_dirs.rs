//! How much of the disk partitions take.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which partitions; none means all of them.
    struct Request {
        topics: Option<Vec<Topic>>,
    }

    /// What is asked of a topic.
    struct Topic {
        topic: String,
        partitions: Vec<i32>,
    }

    /// What lies in each directory.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode [3..],
        results: Vec<LogDir>,
    }

    /// A directory and what lies in it.
    struct LogDir {
        error_code: ErrorCode,
        log_dir: String,
        topics: Vec<TopicResponse>,
        total_bytes: i64 [4..] = -1,
        usable_bytes: i64 [4..] = -1,
    }

    /// The answer for a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// How much a partition takes.
    struct PartitionResponse {
        partition_index: i32,
        partition_size: i64,
        offset_lag: i64,
        is_future_key: bool,
    }
}

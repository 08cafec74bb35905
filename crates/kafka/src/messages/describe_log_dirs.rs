//! DescribeLogDirs: disk usage of partitions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Partitions; null means all.
    struct Request {
        topics: Option<Vec<Topic>>,
    }

    /// Partitions of a topic.
    struct Topic {
        topic: String,
        partitions: Vec<i32>,
    }

    /// Contents of each log directory.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode [3..],
        results: Vec<LogDir>,
    }

    /// A log directory with its contents.
    struct LogDir {
        error_code: ErrorCode,
        log_dir: String,
        topics: Vec<TopicResponse>,
        total_bytes: i64 [4..] = -1,
        usable_bytes: i64 [4..] = -1,
    }

    /// Result for a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// Disk usage of a partition.
    struct PartitionResponse {
        partition_index: i32,
        partition_size: i64,
        offset_lag: i64,
        is_future_key: bool,
    }
}

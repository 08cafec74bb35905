//! CreatePartitions: increases the number of partitions of topics.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// New partition counts by topic.
    struct Request {
        topics: Vec<Topic>,
        timeout_ms: i32,
        validate_only: bool,
    }

    /// New total number of partitions of a topic.
    struct Topic {
        name: String,
        count: i32,
        assignments: Option<Vec<Assignment>>,
    }

    /// Brokers of a new partition.
    struct Assignment {
        broker_ids: Vec<i32>,
    }

    /// Result for each topic.
    struct Response {
        throttle_time_ms: i32,
        results: Vec<TopicResponse>,
    }

    /// Result for a topic.
    struct TopicResponse {
        name: String,
        error_code: ErrorCode,
        error_message: Option<String>,
    }
}

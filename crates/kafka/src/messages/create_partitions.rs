//! More partitions for topics.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// How many partitions each topic is to have.
    struct Request {
        topics: Vec<Topic>,
        timeout_ms: i32,
        validate_only: bool,
    }

    /// How many partitions the topic is to have in all.
    struct Topic {
        name: String,
        count: i32,
        assignments: Option<Vec<Assignment>>,
    }

    /// Which brokers are to hold a new partition.
    struct Assignment {
        broker_ids: Vec<i32>,
    }

    /// What became of each topic.
    struct Response {
        throttle_time_ms: i32,
        results: Vec<TopicResponse>,
    }

    /// The answer for a topic.
    struct TopicResponse {
        name: String,
        error_code: ErrorCode,
        error_message: Option<String>,
    }
}

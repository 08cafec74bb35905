//! DeleteTopics: deletes topics.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Uuid;

message! {
    /// Topics by name, or by id from version 6 on.
    struct Request {
        topics: Vec<Topic> [6..],
        topic_names: Vec<String> [..=5],
        timeout_ms: i32,
    }

    /// A topic, by name or by id.
    struct Topic {
        name: Option<String>,
        topic_id: Uuid,
    }

    /// Result for each topic.
    struct Response {
        throttle_time_ms: i32,
        responses: Vec<TopicResponse>,
    }

    /// Result for a topic.
    struct TopicResponse {
        name: Option<String> [1.., null 6..],
        topic_id: Uuid [6..],
        error_code: ErrorCode,
        error_message: Option<String> [5..],
    }
}

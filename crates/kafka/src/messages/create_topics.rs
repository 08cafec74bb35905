//! CreateTopics: creates topics.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Uuid;

message! {
    /// Topics with their partitions and configuration.
    struct Request {
        topics: Vec<Topic>,
        timeout_ms: i32 = 60000,
        validate_only: bool,
    }

    /// A topic to create; -1 partitions or replicas mean the broker's default.
    struct Topic {
        name: String,
        num_partitions: i32,
        replication_factor: i16,
        assignments: Vec<Assignment>,
        configs: Vec<Config>,
    }

    /// Brokers of a partition.
    struct Assignment {
        partition_index: i32,
        broker_ids: Vec<i32>,
    }

    /// A setting of the topic.
    struct Config {
        name: String,
        value: Option<String>,
    }

    /// Result for each topic.
    struct Response {
        throttle_time_ms: i32,
        topics: Vec<TopicResponse>,
    }

    /// Result for a topic.
    struct TopicResponse {
        name: String,
        topic_id: Uuid [7..],
        error_code: ErrorCode,
        error_message: Option<String>,
        topic_config_error_code: ErrorCode [5.., tag 0],
        num_partitions: i32 [5..] = -1,
        replication_factor: i16 [5..] = -1,
        configs: Option<Vec<ConfigResponse>> [5..] = Some(Vec::new()),
    }

    /// An effective setting of the new topic.
    struct ConfigResponse {
        name: String,
        value: Option<String>,
        read_only: bool,
        config_source: i8 = -1,
        is_sensitive: bool,
    }
}

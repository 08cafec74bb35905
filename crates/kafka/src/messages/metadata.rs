//! Metadata: brokers, topics and partition leaders.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Uuid;

message! {
    /// Topics. Null means all topics; so does an empty list in version 0, which has no null.
    struct Request {
        topics: Option<Vec<TopicRequest>> [0.., null 1..],
        allow_auto_topic_creation: bool [4..] = true,
        include_cluster_authorized_operations: bool [8..=10],
        include_topic_authorized_operations: bool [8..],
    }

    /// A topic, by name or by id.
    struct TopicRequest {
        topic_id: Uuid [10..],
        name: Option<String> [0.., null 10..],
    }

    /// Brokers and topics of the cluster.
    struct Response {
        throttle_time_ms: i32 [3..],
        brokers: Vec<Broker>,
        cluster_id: Option<String> [2..],
        controller_id: i32 [1..] = -1,
        topics: Vec<Topic>,
        cluster_authorized_operations: i32 [8..=10] = i32::MIN,
        error_code: ErrorCode [13..],
    }

    /// Address of a broker.
    struct Broker {
        node_id: i32,
        host: String,
        port: i32,
        rack: Option<String> [1..],
    }

    /// A topic, or its error.
    struct Topic {
        error_code: ErrorCode,
        name: Option<String> [0.., null 12..],
        topic_id: Uuid [10..],
        is_internal: bool [1..],
        partitions: Vec<Partition>,
        topic_authorized_operations: i32 [8..] = i32::MIN,
    }

    /// Leader and replicas of a partition.
    struct Partition {
        error_code: ErrorCode,
        partition_index: i32,
        leader_id: i32,
        leader_epoch: i32 [7..] = -1,
        replica_nodes: Vec<i32>,
        isr_nodes: Vec<i32>,
        offline_replicas: Vec<i32> [5..],
    }
}

//! The quorum that keeps the metadata of the cluster.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Uuid;

message! {
    /// Partitions of the metadata log.
    struct Request {
        topics: Vec<Topic>,
    }

    /// Partitions of a topic.
    struct Topic {
        topic_name: String,
        partitions: Vec<Partition>,
    }

    /// A partition.
    struct Partition {
        partition_index: i32,
    }

    /// The quorum of each partition.
    struct Response {
        error_code: ErrorCode,
        error_message: Option<String> [2..],
        topics: Vec<TopicResponse>,
        nodes: Vec<Node> [2..],
    }

    /// The answer for a topic.
    struct TopicResponse {
        topic_name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// Who leads, who votes and who follows.
    struct PartitionResponse {
        partition_index: i32,
        error_code: ErrorCode,
        error_message: Option<String> [2..],
        leader_id: i32,
        leader_epoch: i32,
        high_watermark: i64,
        current_voters: Vec<ReplicaState>,
        observers: Vec<ReplicaState>,
    }

    /// How far a replica is.
    struct ReplicaState {
        replica_id: i32,
        replica_directory_id: Uuid [2..],
        log_end_offset: i64,
        last_fetch_timestamp: i64 [1..] = -1,
        last_caught_up_timestamp: i64 [1..] = -1,
    }

    /// A member of the quorum.
    struct Node {
        node_id: i32,
        listeners: Vec<Listener>,
    }

    /// Where a member is reached.
    struct Listener {
        name: String,
        host: String,
        port: u16,
    }
}

//! DescribeQuorum: state of the metadata quorum.

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

    /// Quorum of each partition.
    struct Response {
        error_code: ErrorCode,
        error_message: Option<String> [2..],
        topics: Vec<TopicResponse>,
        nodes: Vec<Node> [2..],
    }

    /// Result for a topic.
    struct TopicResponse {
        topic_name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// Leader, voters and observers of a partition.
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

    /// Progress of a replica.
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

    /// Address of a quorum member.
    struct Listener {
        name: String,
        host: String,
        port: u16,
    }
}

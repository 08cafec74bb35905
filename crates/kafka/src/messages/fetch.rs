//! Fetch: reads record batches, waiting for them if there are none yet.

use crate::error_code::ErrorCode;
use crate::leadership::{CurrentLeader, NodeEndpoint};
use crate::message::message;
use crate::values::{Records, Uuid};

message! {
    /// Offsets, sizes and maximum waiting time.
    struct Request {
        cluster_id: Option<String> [12.., tag 0],
        replica_id: i32 [..=14] = -1,
        replica_state: ReplicaState [15.., tag 1],
        max_wait_ms: i32,
        min_bytes: i32,
        max_bytes: i32 = i32::MAX,
        isolation_level: i8,
        session_id: i32 [7..],
        session_epoch: i32 [7..] = -1,
        topics: Vec<Topic>,
        forgotten_topics_data: Vec<ForgottenTopic> [7..],
        rack_id: String [11..],
    }

    /// Follower that fetches; absent for consumers.
    struct ReplicaState {
        replica_id: i32 = -1,
        replica_epoch: i64 = -1,
    }

    /// Partitions of a topic.
    struct Topic {
        topic: String [..=12],
        topic_id: Uuid [13..],
        partitions: Vec<Partition>,
    }

    /// Offset and maximum size for a partition.
    struct Partition {
        partition: i32,
        current_leader_epoch: i32 [9..] = -1,
        fetch_offset: i64,
        last_fetched_epoch: i32 [12..] = -1,
        log_start_offset: i64 [5..] = -1,
        partition_max_bytes: i32,
        replica_directory_id: Uuid [17.., tag 0],
        high_watermark: i64 [18.., tag 1] = i64::MAX,
    }

    /// Partitions to remove from a fetch session.
    struct ForgottenTopic {
        topic: String [..=12],
        topic_id: Uuid [13..],
        partitions: Vec<i32>,
    }

    /// Record batches in their stored format.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode [7..],
        session_id: i32 [7..],
        responses: Vec<TopicResponse>,
        node_endpoints: Vec<NodeEndpoint> [16.., tag 0],
    }

    /// Result for a topic.
    struct TopicResponse {
        topic: String [..=12],
        topic_id: Uuid [13..],
        partitions: Vec<PartitionResponse>,
    }

    /// Record batches of a partition; the first one is complete.
    struct PartitionResponse {
        partition_index: i32,
        error_code: ErrorCode,
        high_watermark: i64,
        last_stable_offset: i64 = -1,
        log_start_offset: i64 [5..] = -1,
        diverging_epoch: EpochEnd [12.., tag 0],
        current_leader: CurrentLeader [12.., tag 1],
        snapshot_id: SnapshotId [12.., tag 2],
        aborted_transactions: Option<Vec<AbortedTransaction>>,
        preferred_read_replica: i32 [11..] = -1,
        records: Option<Records>,
    }

    /// Epoch and offset at which the follower's log diverges from the leader's.
    struct EpochEnd {
        epoch: i32 = -1,
        end_offset: i64 = -1,
    }

    /// Snapshot that a follower must fetch instead.
    struct SnapshotId {
        end_offset: i64 = -1,
        epoch: i32 = -1,
    }

    /// Aborted transaction: consumers skip this producer's records from this offset up to its
    /// marker.
    struct AbortedTransaction {
        producer_id: i64,
        first_offset: i64,
    }
}

//! Record batches to read, waiting for them if there are none yet.

use crate::error_code::ErrorCode;
use crate::leadership::{CurrentLeader, NodeEndpoint};
use crate::message::message;
use crate::values::{Records, Uuid};

message! {
    /// From where, how much, and how long to wait.
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

    /// Which follower asks; consumers leave it out.
    struct ReplicaState {
        replica_id: i32 = -1,
        replica_epoch: i64 = -1,
    }

    /// What is asked of a topic.
    struct Topic {
        topic: String [..=12],
        topic_id: Uuid [13..],
        partitions: Vec<Partition>,
    }

    /// From which offset, and how much.
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

    /// Partitions that a fetch session leaves out from now on.
    struct ForgottenTopic {
        topic: String [..=12],
        topic_id: Uuid [13..],
        partitions: Vec<i32>,
    }

    /// Batches as they are stored.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode [7..],
        session_id: i32 [7..],
        responses: Vec<TopicResponse>,
        node_endpoints: Vec<NodeEndpoint> [16.., tag 0],
    }

    /// The answer for a topic.
    struct TopicResponse {
        topic: String [..=12],
        topic_id: Uuid [13..],
        partitions: Vec<PartitionResponse>,
    }

    /// Batches of a partition, the first of them whole.
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

    /// Where the log of a follower parts from that of the leader.
    struct EpochEnd {
        epoch: i32 = -1,
        end_offset: i64 = -1,
    }

    /// Where a follower finds a snapshot instead.
    struct SnapshotId {
        end_offset: i64 = -1,
        epoch: i32 = -1,
    }

    /// Records of this producer from this offset on are to be left out, up to its marker.
    struct AbortedTransaction {
        producer_id: i64,
        first_offset: i64,
    }
}

//! Produce: appends record batches.

use crate::error_code::ErrorCode;
use crate::leadership::{CurrentLeader, NodeEndpoint};
use crate::message::message;
use crate::values::{Records, Uuid};

/// Lowest version with record batches. Older versions have message sets in older formats; such a
/// request must be answered with an error for each partition.
pub const VERSION_MIN: i16 = 3;

message! {
    /// Batches by topic and partition.
    struct Request {
        transactional_id: Option<String> [3..],
        acks: i16,
        timeout_ms: i32,
        topic_data: Vec<Topic>,
    }

    /// Batches for a topic.
    struct Topic {
        name: String [..=12],
        topic_id: Uuid [13..],
        partition_data: Vec<Partition>,
    }

    /// Batches for a partition.
    struct Partition {
        index: i32,
        records: Option<Records>,
    }

    /// Result for each partition.
    struct Response {
        responses: Vec<TopicResponse>,
        throttle_time_ms: i32 [1..],
        node_endpoints: Vec<NodeEndpoint> [10.., tag 0],
    }

    /// Result for a topic.
    struct TopicResponse {
        name: String [..=12],
        topic_id: Uuid [13..],
        partition_responses: Vec<PartitionResponse>,
    }

    /// Offset of the batch, or its error.
    struct PartitionResponse {
        index: i32,
        error_code: ErrorCode,
        base_offset: i64,
        log_append_time_ms: i64 [2..] = -1,
        log_start_offset: i64 [5..] = -1,
        record_errors: Vec<RecordError> [8..],
        error_message: Option<String> [8..],
        current_leader: CurrentLeader [10.., tag 0],
    }

    /// A record that caused the rejection of its batch.
    struct RecordError {
        batch_index: i32,
        batch_index_error_message: Option<String>,
    }
}

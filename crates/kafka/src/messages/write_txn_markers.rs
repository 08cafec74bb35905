//! Markers that end transactions in partitions: from a coordinator, or from whoever clears a
//! transaction away by hand.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Markers by producer.
    struct Request {
        markers: Vec<Marker>,
    }

    /// The end of a transaction.
    struct Marker {
        producer_id: i64,
        producer_epoch: i16,
        transaction_result: bool,
        topics: Vec<Topic>,
        coordinator_epoch: i32,
    }

    /// Where it is written.
    struct Topic {
        name: String,
        partition_indexes: Vec<i32>,
    }

    /// What became of each marker.
    struct Response {
        markers: Vec<MarkerResponse>,
    }

    /// The answer for a producer.
    struct MarkerResponse {
        producer_id: i64,
        topics: Vec<TopicResponse>,
    }

    /// The answer for a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// The answer for a partition.
    struct PartitionResponse {
        partition_index: i32,
        error_code: ErrorCode,
    }
}

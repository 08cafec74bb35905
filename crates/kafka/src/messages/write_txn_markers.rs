//! WriteTxnMarkers: writes transaction markers to partitions, from a coordinator or from an
//! administrator who aborts a hanging transaction.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Markers by producer.
    struct Request {
        markers: Vec<Marker>,
    }

    /// Marker that ends a transaction.
    struct Marker {
        producer_id: i64,
        producer_epoch: i16,
        transaction_result: bool,
        topics: Vec<Topic>,
        coordinator_epoch: i32,
    }

    /// Partitions of the marker.
    struct Topic {
        name: String,
        partition_indexes: Vec<i32>,
    }

    /// Result for each marker.
    struct Response {
        markers: Vec<MarkerResponse>,
    }

    /// Result for a producer.
    struct MarkerResponse {
        producer_id: i64,
        topics: Vec<TopicResponse>,
    }

    /// Result for a topic.
    struct TopicResponse {
        name: String,
        partitions: Vec<PartitionResponse>,
    }

    /// Result for a partition.
    struct PartitionResponse {
        partition_index: i32,
        error_code: ErrorCode,
    }
}

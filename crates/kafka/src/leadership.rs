//! Who leads a partition: what Produce and Fetch say beside an error, so that a client need not ask
//! for metadata first (KIP-951).

use crate::message::message;

message! {
    /// The leader of a partition; -1 is unknown.
    struct CurrentLeader {
        leader_id: i32 = -1,
        leader_epoch: i32 = -1,
    }

    /// Where a leader is reached.
    struct NodeEndpoint {
        node_id: i32,
        host: String,
        port: i32,
        rack: Option<String>,
    }
}

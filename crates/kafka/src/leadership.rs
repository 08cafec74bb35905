//! Current leader of a partition, which Produce and Fetch return with an error so that clients need
//! no Metadata request (KIP-951).

use crate::message::message;

message! {
    /// Leader of a partition; -1 if unknown.
    struct CurrentLeader {
        leader_id: i32 = -1,
        leader_epoch: i32 = -1,
    }

    /// Address of a broker.
    struct NodeEndpoint {
        node_id: i32,
        host: String,
        port: i32,
        rack: Option<String>,
    }
}

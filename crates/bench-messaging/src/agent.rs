//! `bench agent`: messages between agents through a node, in the three modes of the SLIM suite, and
//! one to many.
//!
//! | mode | receivers | a message is complete when |
//! |---|---|---|
//! | request-reply | echo and count | its reply arrives |
//! | fire-and-forget | count | it is handed to the connection; the sink's count is the throughput |
//! | write | none | the node has accepted it (`durability = memory`) |
//! | publish | all count | it is handed to the connection; the subscribers' total is the throughput |
//!
//! Node, sender and receivers are separate processes. Each client has a connection and a
//! destination of its own; each subscriber of a publisher has its own connection, all in one
//! process.

mod drive;
mod matrix;
mod native;
mod receiver;
mod sender;
mod sink;
pub mod slim;
mod suite;

use serde::{Deserialize, Serialize};

pub use matrix::{AgentMode, Matrix};
pub use receiver::receive;
pub use sender::send;
pub use suite::run;

use bench::tally::Tally;
use bench::workload::role::RoleSpec;

/// Returns the name of client `index`'s destination.
fn destination(index: u32) -> String {
    format!("bench/agent/echo-{index}")
}

/// Parameters of a sender process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SenderSpec {
    /// Address of the node.
    node: String,
    mode: AgentMode,
    /// Connections, each with a destination of its own.
    clients: u32,
    /// Size of the body in bytes.
    size: usize,
    /// Messages per second of all clients together; 0 means as many as possible.
    rate: u64,
    /// Messages each client keeps in flight when it is not paced.
    in_flight: u32,
    /// Length of the send window.
    window_ns: u64,
}

impl RoleSpec for SenderSpec {
    fn role(&self) -> &'static str {
        "agent-sender"
    }
}

/// Parameters of a receiver process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReceiverSpec {
    /// Address of the node.
    node: String,
    /// Names to subscribe to, each over its own connection.
    names: Vec<String>,
    /// Size of every message in bytes.
    size: usize,
}

impl RoleSpec for ReceiverSpec {
    fn role(&self) -> &'static str {
        "agent-receiver"
    }
}

/// Counts of a sender.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SenderCounts {
    tally: Tally,
    window_ns: u64,
}

//! `bench rpc`: calls in series, awaited together, and with callbacks; directly and through a node;
//! compared with floors and peers that do the same work.
//!
//! | mode | calls |
//! |---|---|
//! | serial | one at a time, awaited |
//! | blocking | one at a time on a blocking socket with adaptive spin, no runtime |
//! | concurrent | a sliding window, replies awaited in order (`call_all`) |
//! | callback | a callback makes the next call when a reply arrives; no future at all |
//!
//! Caller and callee are separate processes with one thread each, except for `inproc`, where they
//! share one thread. The window opens before the first call and closes with the last reply. The
//! length of every reply is checked, and every call is timed.

mod layout;
mod load;
mod matrix;
mod server;
mod suite;

use serde::{Deserialize, Serialize};

pub use load::load;
pub use matrix::{Amount, Matrix, RpcMode};
pub use server::serve;
pub use suite::run;

use bench::tally::Tally;
use bench::workload::role::RoleSpec;

/// Name of the agent that is called through a node.
const CALLEE: &str = "bench/rpc/echo";

/// Intermediary between caller and callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// No intermediary.
    Direct,
    /// A node.
    Node,
}

/// Parameters of a caller process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Address of the callee; without one the process calls itself.
    address: Option<String>,
    mode: RpcMode,
    /// Number of calls in flight.
    in_flight: u32,
    /// Size of the body in bytes.
    size: usize,
    amount: Amount,
}

impl RoleSpec for LoadSpec {
    fn role(&self) -> &'static str {
        "rpc-load"
    }
}

/// Parameters of a callee process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerSpec {
    /// Address to listen on, or of the node through which it answers.
    address: String,
    through_node: bool,
}

impl RoleSpec for ServerSpec {
    fn role(&self) -> &'static str {
        "rpc-server"
    }
}

/// Counts of a caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CallCounts {
    tally: Tally,
    window_ns: u64,
}

impl Via {
    /// Returns the name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Node => "node",
        }
    }
}

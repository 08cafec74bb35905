//! `bench rpc`: calls, one after the other, awaited together, and with callbacks; directly and through a
//! node; beside floors and peers that do the same work.
//!
//! | mode | how calls are made |
//! |---|---|
//! | serial | one at a time, awaited |
//! | blocking | one at a time on a blocking socket with adaptive spin, no runtime |
//! | concurrent | a sliding window, replies awaited in order (`call_all`) |
//! | callback | a function makes the next call when a reply comes in; no future at all |
//!
//! Caller and callee are separate processes with one thread each, but for `inproc`, where they share
//! one. The window opens before its first call and closes with the last reply; every reply's length is
//! checked and every call timed.

mod layout;
mod load;
mod matrix;
mod server;
mod suite;

use serde::{Deserialize, Serialize};

pub(super) use load::load;
pub use matrix::{Amount, Matrix, RpcMode};
pub(super) use server::serve;
pub use suite::run;

use crate::tally::Tally;

/// The agent that is called through a node.
const CALLEE: &str = "bench/rpc/echo";

/// How caller and callee are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// `tcp://` on loopback.
    Tcp,
    /// `unix://`.
    Unix,
    /// Within one process: caller and callee share its thread.
    Inproc,
}

/// Between caller and callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Nothing.
    Direct,
    /// A node.
    Node,
}

/// What a caller does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LoadSpec {
    /// Whom it calls; without an address it is its own callee.
    address: Option<String>,
    mode: RpcMode,
    /// Calls in flight.
    in_flight: u32,
    /// Body in bytes.
    size: usize,
    amount: Amount,
}

/// What a callee does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ServerSpec {
    /// Where it listens, or the node it answers through.
    address: String,
    through_node: bool,
}

/// What a caller counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Called {
    tally: Tally,
    window_ns: u64,
}

impl Transport {
    /// The transport's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Inproc => "inproc",
        }
    }
}

impl Via {
    /// The name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Node => "node",
        }
    }
}

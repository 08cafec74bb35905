//! `bench store`: durable appends to conversations, each acknowledged when it is on disk.
//!
//! Virtual users join one after the other during the ramp. Each has a number of messages in flight
//! on a conversation of its own (with `--soak`: on one conversation after another). The counts
//! cover messages that were sent and acknowledged in the steady window after the ramp.
//!
//! | target | server |
//! |---|---|
//! | `telpher` | a node, over each of its client APIs |
//! | `disk-floor`, 1 client | one thread that repeatedly writes the same number of bytes and syncs |
//! | `disk-floor`, many clients | group commit in one process: all waiting writers share a sync |
//! | `durable-echo` | the same number of connections and messages, echoed when they are on disk |
//! | `postgres` | one-row `INSERT`s through pgbench, a client for each message in flight |
//! | `redis` | `RPUSH` with `appendfsync always`, the same number of connections and messages |
//! | `durable-streams` | that crate's server over HTTP, a connection for each message in flight |
//!
//! Every run has a server and a directory of its own on the measured disk. The server's usage is
//! that of its whole process tree over the steady window.

mod agent;
pub mod client;
mod http;
mod load;
mod matrix;
mod memory;
pub mod message;
mod rivals;
mod server;
mod suite;
mod tree;

use serde::{Deserialize, Serialize};

pub use load::play;
pub use matrix::{Door, Matrix};
pub use suite::run;

use bench::tally::Tally;
use bench::workload::role::RoleSpec;

/// Client API of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LoadClient {
    Native,
    Http,
    Ws,
    Redis,
    DurableStreams,
}

/// Parameters of a load process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadSpec {
    client: LoadClient,
    /// `HOST:PORT`; for the native listener, with the transport as a scheme.
    address: String,
    vus: u32,
    /// Messages in flight per user.
    pipeline: u32,
    /// Messages after which a user continues with another conversation. `None`: each user has one
    /// conversation.
    messages: Option<u64>,
    /// Size of a message's text in bytes.
    size: usize,
    /// Duration over which the users join.
    ramp_ns: u64,
    window_ns: u64,
}

impl RoleSpec for LoadSpec {
    fn role(&self) -> &'static str {
        "store-load"
    }
}

/// Counts of a load in its window.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct AppendCounts {
    tally: Tally,
    window_ns: u64,
}

/// Line that a load prints when its window opens.
const STEADY: &str = "steady";

//! `bench store`: messages appended to conversations, each acknowledged when it is on disk.
//!
//! As many virtual users as said join one after the other while the load ramps up; each keeps as many
//! messages in flight on a conversation of its own (`--soak`: on one after the other). Counted is what was begun and acknowledged in the
//! steady window behind the ramp.
//!
//! | target | what it is |
//! |---|---|
//! | `telpher` | a node, over each of its doors |
//! | `disk-floor`, 1 client | one thread that writes as many bytes and syncs, over and over |
//! | `disk-floor`, many clients | group commit in one process: all who wait share a sync |
//! | `durable-echo` | as many connections and messages, echoed when they are on disk |
//! | `postgres` | one-row `INSERT`s through pgbench, a client for each message in flight |
//! | `redis` | `RPUSH` with `appendfsync always`, as many connections and messages |
//! | `durable-streams` | that crate's server over HTTP, a connection for each message in flight |
//!
//! Every run has a server of its own and a directory of its own on the disk that is measured. What a
//! server used is that of its whole process tree over the steady window.

mod agent;
mod client;
mod http;
pub mod idle;
pub mod kill;
mod load;
mod matrix;
mod memory;
mod message;
mod rivals;
mod server;
pub mod soak;
pub(super) mod space;
mod suite;
mod tree;

use serde::{Deserialize, Serialize};

pub(super) use load::play;
pub use matrix::{Door, Matrix};
pub use suite::run;

use crate::model::{CountedBy, Mode};
use crate::tally::Tally;

/// Messages, each acknowledged when it is on disk.
pub const APPEND: Mode = Mode::new("append", CountedBy::Sender, true);

/// How a load appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    Native,
    Http,
    Ws,
    Redis,
    DurableStreams,
}

/// What a load does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LoadSpec {
    way: Way,
    /// `HOST:PORT`; of a native door with what it is reached over.
    address: String,
    vus: u32,
    /// Messages that each has in flight.
    pipeline: u32,
    /// Messages after which a user goes on with another conversation; `None`: each has one.
    messages: Option<u64>,
    /// Bytes of a message's text.
    size: usize,
    /// Over which the users join.
    ramp_ns: u64,
    window_ns: u64,
}

/// What it counted in its window.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Appended {
    tally: Tally,
    window_ns: u64,
}

/// What a load says when its window opens.
const STEADY: &str = "steady";

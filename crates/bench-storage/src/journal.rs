//! `bench journal`: durable appends, within a process and through a node's native listener,
//! compared with floors that do the minimum that such an append needs.
//!
//! | via | appenders | floor |
//! |---|---|---|
//! | process | writers in the journal's own process, each waiting for its append | `disk-floor`: as many writers, one file |
//! | door | connections with appends in flight, through `telpher serve` | `durable-echo`: as many connections and requests, answered after a sync |
//!
//! Every run, ours or a floor's, has a directory of its own on the disk that `--dir` names. The
//! durable echo runs with one thread and with two, because the shape decides which is faster: *the
//! floor of a claim is the faster of the two*.
//!
//! *Filing on* means segments of 16 MiB: some are sealed, filed and merged in every second of a
//! run. *Filing off* means segments of 256 MiB, prepared before the window, so that none is sealed
//! in it. The window opens when the journal is warm and closes with the last acknowledgement.

mod door;
mod matrix;
mod suite;
mod writers;

use serde::{Deserialize, Serialize};

pub use door::append;
pub use matrix::{Filing, Matrix, Via};
pub use suite::run;
pub use writers::{fresh, now_ms, write};

use bench::measurement::Storage;
use bench::tally::Tally;
use bench::workload::role::RoleSpec;

/// Parameters of writers within a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WritersSpec {
    /// Empty directory for the journal.
    directory: String,
    writers: u32,
    /// Threads that run the writers.
    threads: u32,
    /// Size of a record in bytes.
    size: usize,
    /// Number of streams that they append to in turn.
    streams: u64,
    segment_size: u64,
    window_ns: u64,
}

impl RoleSpec for WritersSpec {
    fn role(&self) -> &'static str {
        "journal-writers"
    }
}

/// Parameters of a load through the native listener.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DoorSpec {
    /// Address of the node.
    node: String,
    connections: u32,
    /// Appends in flight on each connection.
    in_flight: u32,
    /// Size of a record in bytes.
    size: usize,
    /// Number of streams over which the slots of all windows are spread.
    streams: u64,
    window_ns: u64,
}

impl RoleSpec for DoorSpec {
    fn role(&self) -> &'static str {
        "journal-door"
    }
}

/// Counts of such a load.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct AppendCounts {
    tally: Tally,
    window_ns: u64,
}

/// Counts of the writers.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct WriterCounts {
    tally: Tally,
    window_ns: u64,
    storage: Storage,
}

//! `bench journal`: appends that are on disk when they are acknowledged; within a process and through
//! a node's native door; beside floors that do the least that such an append needs.
//!
//! | via | who appends | floor |
//! |---|---|---|
//! | process | writers in the journal's own process, each waiting for its append | `disk-floor`: as many writers, one file |
//! | door | connections with appends in flight, through `telpher serve` | `durable-echo`: as many connections and requests, answered after a sync |
//!
//! A run of ours has a directory of its own, on the disk that `--dir` names; so has every run of a
//! floor. The durable echo comes with one thread and with two, because which is faster depends on the
//! shape: *the floor of a claim is the faster of the two*.
//!
//! *Filing on* means segments of 16 MiB: some are sealed, filed and merged in every second of a run.
//! *Filing off* means segments of 256 MiB, prepared before the window, so that none is sealed in it.
//! The window opens when the journal is warm and closes with the last acknowledgement.

mod door;
pub(super) mod floor;
pub mod kill;
mod matrix;
pub(super) mod prepared;
pub mod restart;
mod suite;
mod writers;

use serde::{Deserialize, Serialize};

pub(super) use door::append;
pub use matrix::{Filing, Matrix, Via};
pub(super) use restart::{StreamsSpec, play as play_streams};
pub use suite::run;
pub(super) use writers::write;

use crate::measurement::Storage;
use crate::model::{CountedBy, Mode};
use crate::tally::Tally;

/// Appends, each acknowledged when it is on disk.
pub const APPEND: Mode = Mode::new("append", CountedBy::Sender, true);

/// What writers within a process do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WritersSpec {
    /// An empty directory for the journal.
    directory: String,
    writers: u32,
    /// The threads that stand for them.
    threads: u32,
    /// Bytes of a record.
    size: usize,
    /// Streams that they append to in turn.
    streams: u64,
    segment_size: u64,
    window_ns: u64,
}

/// What a load through the door does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DoorSpec {
    /// The node's address.
    node: String,
    connections: u32,
    /// Appends that each connection has in flight.
    in_flight: u32,
    /// Bytes of a record.
    size: usize,
    /// Streams over which the places of all windows are spread.
    streams: u64,
    window_ns: u64,
}

/// What it counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Appended {
    tally: Tally,
    window_ns: u64,
}

/// What writers counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Written {
    tally: Tally,
    window_ns: u64,
    storage: Storage,
}

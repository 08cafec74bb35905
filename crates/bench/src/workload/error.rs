//! Errors of benchmarks.

use std::path::PathBuf;

use crate::process::WatchError;
use crate::suite::RecordError;
use crate::sweep::SweepOptionsError;
use crate::workload::child::ChildError;

/// Errors that end a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A process failed to play its role.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// A process cannot be measured.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A measurement contradicts itself.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The options of a sweep are invalid.
    #[error("{0}\nhint: `telpher bench agent --help` explains the options of a sweep")]
    Sweep(#[from] SweepOptionsError),
    /// The temporary directory for the sockets of the roles cannot be made.
    #[error("cannot make a temporary directory: {0}\nhint: set TMPDIR to a directory of your own")]
    Directory(#[source] std::io::Error),
    /// Free memory cannot be filled.
    #[error("cannot fill memory with {0}: {1}\nhint: name a file on a disk: --fill-memory FILE")]
    Memory(PathBuf, #[source] std::io::Error),
    /// A node did not answer as expected.
    #[error("{0}\nhint: run it again, and look at the log of the node if it repeats")]
    Node(String),
    /// The filters leave no case of the matrix.
    #[error("nothing to run: {0}\nhint: {1}")]
    Nothing(String, &'static str),
}

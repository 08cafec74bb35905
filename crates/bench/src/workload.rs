//! Benchmark workloads, and the processes that run them.
//!
//! Every role is a process of its own, started from our own executable (`telpher bench-role`) or
//! from a peer's. Roles communicate over standard input and output: a line of JSON when ready, `go`
//! to begin, a line of JSON with the counts. A role ends when its standard input closes, so no
//! process outlives the suite. Workloads compute no figure: measurements go to a [`Suite`].

pub mod agent;
mod child;
mod disk_counters;
mod idle_memory;
pub mod journal;
pub mod kafka;
mod killed_node;
mod node;
mod peer;
mod placement;
pub mod quota;
mod rival_server;
pub mod role;
pub mod rpc;
pub mod store;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use child::ChildError;
pub use placement::Placement;
use tempfile::TempDir;

use crate::measurement::Measurement;
use crate::model::Case;
use crate::plan;
use crate::process::WatchError;
use crate::suite::{RecordError, Suite};
use crate::sweep::SweepOptionsError;

/// Paths that every workload needs.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Path of our own executable, which also plays the roles.
    pub executable: PathBuf,
    /// Directory of the executables of floors and peers, if they are wanted.
    pub peers: Option<PathBuf>,
}

/// Name of our own target in results.
pub const OURS: &str = "telpher";

/// Maximum time for a role to become ready or to answer before the suite fails.
const PATIENCE: Duration = Duration::from_secs(60);

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
    /// A node did not answer as expected.
    #[error("{0}\nhint: run it again, and look at the log of the node if it repeats")]
    Node(String),
    /// The filters leave no case of the matrix.
    #[error("nothing to run: {0}\nhint: {1}")]
    Nothing(String, &'static str),
}

/// Makes a temporary directory for one run on the measured disk.
fn temporary_directory(on_disk: &Path) -> Result<TempDir, WorkloadError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("telpher-bench-");
    builder
        .tempdir_in(on_disk)
        .map_err(WorkloadError::Directory)
}

/// Runs every case `repeats` times, interleaved.
fn take_turns(
    suite: &mut Suite,
    cases: &[Case],
    repeats: u32,
    mut measure: impl FnMut(usize) -> Result<Measurement, WorkloadError>,
) -> Result<(), WorkloadError> {
    for (position, _) in plan::interleaved(cases.len(), repeats) {
        let case = &cases[position];
        suite.starting(case);
        suite.record(case, measure(position)?)?;
    }
    Ok(())
}

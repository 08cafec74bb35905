//! The workloads: what the benchmarks run, and the processes they run it in.
//!
//! Every role is a process of its own, started from our own executable (`telpher bench-role`) or from
//! a peer's, and spoken to over its standard streams: a line of JSON when it is ready, `go` to begin, a
//! line of JSON with what it counted. A role ends when its standard input does, so nothing outlives the
//! suite. Nothing here computes a figure: measurements go to a [`Suite`].

pub mod agent;
mod child;
mod counted;
pub mod journal;
pub mod kafka;
mod mortal;
mod node;
mod peer;
mod placement;
pub mod quota;
mod rest;
mod rival;
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

/// What every workload needs to know of its surroundings.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Our own executable, which also plays the roles.
    pub executable: PathBuf,
    /// Where the executables of floors and peers are, when they are wanted.
    pub peers: Option<PathBuf>,
}

/// Name of our own target in results.
pub const OURS: &str = "telpher";

/// How long a role may take to get ready or to answer before the suite gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a benchmark could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A process did not do its part.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// A process cannot be measured.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A measurement cannot be true.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A sweep that makes no sense.
    #[error("{0}\nhint: `telpher bench agent --help` explains the options of a sweep")]
    Sweep(#[from] SweepOptionsError),
    /// The sockets of the roles have no place.
    #[error("cannot make a temporary directory: {0}\nhint: set TMPDIR to a directory of your own")]
    Directory(#[source] std::io::Error),
    /// A node that we talk to ourselves did not do its part.
    #[error("{0}\nhint: run it again, and look at the log of the node if it repeats")]
    Node(String),
    /// Nothing is left of the matrix.
    #[error("nothing to run: {0}\nhint: {1}")]
    Nothing(String, &'static str),
}

/// A directory of a run's own on the disk that is measured.
fn place(on_disk: &Path) -> Result<TempDir, WorkloadError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("telpher-bench-");
    builder
        .tempdir_in(on_disk)
        .map_err(WorkloadError::Directory)
}

/// Runs every case that many times, taking turns.
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

//! Paths, names and time limits that all benchmarks share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::workload::error::WorkloadError;

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
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Makes a temporary directory for one run on the measured disk.
///
/// # Errors
/// When it cannot be made.
pub fn temporary_directory(on_disk: &Path) -> Result<TempDir, WorkloadError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("telpher-bench-");
    builder
        .tempdir_in(on_disk)
        .map_err(WorkloadError::Directory)
}

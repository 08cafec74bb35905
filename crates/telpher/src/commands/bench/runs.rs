//! Arguments that several benchmarks share: the length and number of runs, and the measured disk.

use std::path::PathBuf;
use std::time::Duration;

use crate::settings::parse_duration;

/// The arguments of short runs, which are repeated by default.
#[derive(Debug, clap::Args)]
pub(super) struct ShortRuns {
    /// Length of a run
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    pub(super) duration: Duration,

    /// Runs of each case
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeats: u32,
}

/// The arguments of long runs on a disk, which are not repeated by default.
#[derive(Debug, clap::Args)]
pub(super) struct DiskRuns {
    /// Runs of each case; an interval needs at least two
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeats: u32,

    /// Directory on the disk to measure; the data in it is removed at the end
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) dir: PathBuf,
}

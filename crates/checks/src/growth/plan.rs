//! Parameters of the measurement.

use std::path::PathBuf;
use std::time::Duration;

use bench::growth::Dimension;

/// Parameters of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Dimensions to measure, in order.
    pub of: Vec<Dimension>,
    /// Highest step of every kind of item; `None` for that of the published curves.
    pub items_max: Option<u64>,
    /// Highest step of the log in gigabytes.
    pub log_max: u64,
    /// Bytes of a gigabyte of the log: tests write less.
    pub log_unit: u64,
    /// Length of the load of one repeat.
    pub window: Duration,
    /// Repeats of the load in each step.
    pub repeats: u32,
    /// Idle time before memory is read.
    pub rest: Duration,
    /// Time limit of one step.
    pub step_limit: Duration,
    /// Time limit of the whole measurement.
    pub limit: Duration,
    /// Directory on the measured disk; the nodes' directories are created in it.
    pub directory: PathBuf,
}

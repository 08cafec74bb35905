//! Outcome of a step: measured, left out, or failed.

use std::time::Duration;

use bench::flags::{Flag, is_noisy_host};
use bench::process::Usage;
use bench::workload::error::WorkloadError;

/// Maximum time to wait until memory settles after the rest.
pub(super) const SETTLE: Duration = Duration::from_secs(20);

/// A step that did not fit into a limit, or the error that ends the measurement.
#[derive(Debug)]
pub(super) enum StepError {
    LeftOut(String),
    Failed(WorkloadError),
}

impl<E: Into<WorkloadError>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Returns the flag of a machine with other load.
pub(super) fn noisy_host(usage: &Usage) -> Option<Flag> {
    let host = usage.host?;
    is_noisy_host(host.steal_percent, host.foreign_percent).then_some(Flag::NoisyHost)
}

pub(super) fn node_error(problem: &str) -> WorkloadError {
    WorkloadError::Node(problem.to_owned())
}

/// Returns the first line of an error, without its hint.
pub(super) fn first_line(error: &WorkloadError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

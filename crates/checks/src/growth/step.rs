//! Outcome of a step: measured, left out, or failed.

use std::time::Duration;

use bench::flags::Flag;
use bench::growth::{Dimension, Growth, LeftOut};
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

/// Record of the steps that were left out.
pub(super) trait LeaveOut {
    /// Adds a step, with the reason.
    fn leave_out(&mut self, of: Dimension, step: u64, reason: &str);
}

impl LeaveOut for Growth {
    fn leave_out(&mut self, of: Dimension, step: u64, reason: &str) {
        self.left_out.push(LeftOut {
            of,
            step,
            reason: reason.to_owned(),
        });
    }
}

/// Returns the flag of a machine with other load, by the rule of the other benchmarks.
pub(super) fn noisy_host(usage: &Usage) -> Option<Flag> {
    let host = usage.host?;
    (host.steal_percent > 2.0 || host.foreign_percent > 20.0).then_some(Flag::NoisyHost)
}

pub(super) fn node_error(problem: &str) -> WorkloadError {
    WorkloadError::Node(problem.to_owned())
}

/// Returns the first line of an error, without its hint.
pub(super) fn first_line(error: &WorkloadError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

//! Warnings about failed compactions.

use parking_lot::MutexGuard;

use super::Failures;
use crate::service::Topics;

impl Topics {
    pub(crate) fn compaction_failures(&self) -> MutexGuard<'_, Failures> {
        self.state.compaction_failures.lock()
    }

    /// Returns the warnings about compactions since the last call, one per log line.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.compaction_failures().warnings)
    }
}

//! Filing, together with the journal state that it updates, as one steppable value.

use std::sync::Arc;

use crate::filing::{EraseBacklog, Filer, Step, Totals};
use crate::shared::{FilingCounts, Shared};

/// Drives [`filing`](crate::filing) and publishes its results to the journal.
#[derive(Debug)]
pub struct Background {
    shared: Arc<Shared>,
    filer: Filer,
}

impl Background {
    pub(crate) fn new(shared: Arc<Shared>, filer: Filer) -> Background {
        Background { shared, filer }
    }

    /// Does one bounded piece of work. `now_ms` is in milliseconds since 1970 and must never
    /// decrease.
    pub fn step(&mut self, now_ms: u64) -> Step {
        if self.shared.health.is_failed() {
            return Step::Failed;
        }
        let step = self.filer.step(&*self.shared, now_ms);
        if let (Step::Failed, Some(failure)) = (step, self.filer.failure()) {
            self.shared.health.fail_filing(failure.to_string());
            // A line that waits for a segment would wait forever.
            self.shared.doorbell.signal();
        }
        self.shared.health.set_retrying(self.filer.retry_reason());
        self.shared.wake_starved_line();
        *self.shared.counters.filing.lock() = FilingCounts {
            totals: self.filer.totals(),
            dead_bytes: self.filer.dead_bytes(),
        };
        step
    }

    /// Returns when to step again after an idle step, unless something happens earlier.
    pub fn due_ms(&self, now_ms: u64) -> Option<u64> {
        self.filer.due_ms(&*self.shared, now_ms)
    }

    /// Returns the erases whose bytes have not all left the disk.
    pub fn erase_pending(&self) -> Option<EraseBacklog> {
        self.filer.erase_pending()
    }

    /// Returns counters since the journal was opened.
    pub fn totals(&self) -> Totals {
        self.filer.totals()
    }
}

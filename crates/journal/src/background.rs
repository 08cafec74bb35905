//! The filing and the journal that it works for, as one thing to step.

use std::sync::Arc;

use crate::figures::FilingCounts;
use crate::filing::{Filer, Pending, Step, Totals};
use crate::shared::Shared;

/// See the module's documentation. What it does is the filing's: see
/// [`filing`](crate::filing).
#[derive(Debug)]
pub struct Background {
    shared: Arc<Shared>,
    filer: Filer,
}

impl Background {
    pub(crate) fn new(shared: Arc<Shared>, filer: Filer) -> Background {
        Background { shared, filer }
    }

    /// Does one bounded piece of work. `now_ms` is milliseconds since 1970 and never goes back.
    pub fn step(&mut self, now_ms: u64) -> Step {
        if self.shared.health.is_failed() {
            return Step::Failed;
        }
        let step = self.filer.step(&*self.shared, now_ms);
        if let (Step::Failed, Some(failure)) = (step, self.filer.failure()) {
            self.shared.health.fail_filing(failure.to_string());
            // A line that waits for a segment waits in vain.
            self.shared.doorbell.poke();
        }
        self.shared.health.set_retrying(self.filer.retry_reason());
        self.shared.feed_line();
        *self.shared.counters.filing.lock() = FilingCounts {
            totals: self.filer.totals(),
            dead_bytes: self.filer.dead_bytes(),
        };
        step
    }

    /// When to step again after an idle step if nothing happens until then.
    pub fn due_ms(&self, now_ms: u64) -> Option<u64> {
        self.filer.due_ms(&*self.shared, now_ms)
    }

    /// Erases whose bytes are not all gone from the disk.
    pub fn erase_pending(&self) -> Option<Pending> {
        self.filer.erase_pending()
    }

    /// What was done since the start.
    pub fn totals(&self) -> Totals {
        self.filer.totals()
    }
}

//! Whether the journal takes appends, and if not, why.
//!
//! ```text
//! ## Serving <=> DiskFull
//! ## Serving | DiskFull => FilingFailed      once, for good
//! ## any => Failed                           once, for good
//! ```

use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Appends are taken.
    Serving,
    /// The background found no room: appends are refused, trims and erases are taken.
    DiskFull,
    /// The background has stopped for good. Everything is taken until the line has no segment to
    /// go on in.
    FilingFailed {
        /// What failed, for a person.
        reason: String,
    },
    /// A write or a sync failed. Nothing is written any more.
    Failed {
        /// What failed, for a person.
        reason: String,
    },
}

const SERVING: u8 = 0;
const DISK_FULL: u8 = 1;
const FILING_FAILED: u8 = 2;
const FAILED: u8 = 3;

/// The journal's health; reading whether appends are taken costs one load.
#[derive(Debug, Default)]
pub(crate) struct HealthCell {
    state: AtomicU8,
    reason: Mutex<String>,
}

impl HealthCell {
    pub(crate) fn get(&self) -> Health {
        match self.state.load(Ordering::Acquire) {
            SERVING => Health::Serving,
            DISK_FULL => Health::DiskFull,
            FILING_FAILED => Health::FilingFailed {
                reason: self.reason.lock().clone(),
            },
            _ => Health::Failed {
                reason: self.reason.lock().clone(),
            },
        }
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.state.load(Ordering::Acquire) == SERVING
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.state.load(Ordering::Acquire) == FAILED
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        self.state.load(Ordering::Acquire) == DISK_FULL
    }

    /// Latches the first failure; later ones change nothing.
    pub(crate) fn fail(&self, reason: String) {
        let mut first = self.reason.lock();
        if self.state.swap(FAILED, Ordering::AcqRel) != FAILED {
            *first = reason;
        }
    }

    /// Latches a failure of the background, unless everything has failed.
    pub(crate) fn fail_filing(&self, reason: String) {
        let mut first = self.reason.lock();
        if self.state.load(Ordering::Acquire) < FILING_FAILED {
            self.state.store(FILING_FAILED, Ordering::Release);
            *first = reason;
        }
    }

    /// The disk has no room, or has some again. A failure stays.
    pub(crate) fn set_disk_full(&self, is_full: bool) {
        let (from, to) = match is_full {
            true => (SERVING, DISK_FULL),
            false => (DISK_FULL, SERVING),
        };
        let _ = self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stays_and_keeps_its_first_reason() {
        let health = HealthCell::default();
        health.set_disk_full(true);
        assert_eq!(health.get(), Health::DiskFull);
        health.set_disk_full(false);
        assert_eq!(health.get(), Health::Serving);
        health.fail_filing("filing".into());
        health.set_disk_full(true);
        let reason = "filing".into();
        assert_eq!(health.get(), Health::FilingFailed { reason });
        health.fail("first".into());
        health.fail("second".into());
        health.set_disk_full(true);
        let reason = "first".into();
        assert_eq!(health.get(), Health::Failed { reason });
    }
}

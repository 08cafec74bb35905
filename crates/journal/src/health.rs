//! Health of the journal: whether it accepts appends, and why not.
//!
//! ```text
//! ## Serving <=> FilingRetrying | DiskFull
//! ## Serving | FilingRetrying | DiskFull => FilingFailed      permanent
//! ## any => Failed                           permanent
//! ```

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Health of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Appends are accepted.
    Serving,
    /// Background work failed and is retried. Appends are accepted until the line runs out of
    /// segments, and again once the work succeeds.
    FilingRetrying {
        /// The error, for a person.
        reason: String,
    },
    /// The filing found no disk space: appends are refused, trims and erases accepted.
    DiskFull,
    /// The filing has stopped permanently. Everything is accepted until the line runs out of
    /// segments.
    FilingFailed {
        /// The error, for a person.
        reason: String,
    },
    /// A write or a sync failed. Nothing is written any more.
    Failed {
        /// The error, for a person.
        reason: String,
    },
}

const SERVING: u8 = 0;
const DISK_FULL: u8 = 1;
const FILING_FAILED: u8 = 2;
const FAILED: u8 = 3;

/// Number of entries into each state since the journal was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthChanges {
    /// Back to serving, from a temporary state.
    pub serving: u64,
    /// [`Health::FilingRetrying`].
    pub filing_retrying: u64,
    /// [`Health::DiskFull`].
    pub disk_full: u64,
    /// [`Health::FilingFailed`].
    pub filing_failed: u64,
    /// [`Health::Failed`].
    pub failed: u64,
}

/// The journal's health. Checking whether appends are accepted costs one load.
#[derive(Debug, Default)]
pub(crate) struct HealthCell {
    state: AtomicU8,
    reason: Mutex<String>,
    /// The error of background work that is being retried.
    retrying: Mutex<Option<String>>,
    changes: ChangeCounters,
}

#[derive(Debug, Default)]
struct ChangeCounters {
    serving: AtomicU64,
    filing_retrying: AtomicU64,
    disk_full: AtomicU64,
    filing_failed: AtomicU64,
    failed: AtomicU64,
}

impl HealthCell {
    pub(crate) fn get(&self) -> Health {
        match self.state.load(Ordering::Acquire) {
            SERVING => match &*self.retrying.lock() {
                Some(reason) => Health::FilingRetrying {
                    reason: reason.clone(),
                },
                None => Health::Serving,
            },
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

    pub(crate) fn is_filing_failed(&self) -> bool {
        self.state.load(Ordering::Acquire) == FILING_FAILED
    }

    /// Returns the failure reason for a line that needs a segment after filing has failed.
    pub(crate) fn out_of_segments(&self) -> String {
        let reason = self.reason.lock();
        format!("no free segment, and filing has failed: {reason}")
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
            count(&self.changes.failed);
            *first = reason;
        }
    }

    /// Latches a failure of the filing, unless the journal has failed already.
    pub(crate) fn fail_filing(&self, reason: String) {
        let mut first = self.reason.lock();
        if self.state.load(Ordering::Acquire) < FILING_FAILED {
            count(&self.changes.filing_failed);
            self.state.store(FILING_FAILED, Ordering::Release);
            *first = reason;
        }
    }

    /// Enters or leaves the disk-full state. A failure stays.
    pub(crate) fn set_disk_full(&self, is_full: bool) {
        let (from, to) = match is_full {
            true => (SERVING, DISK_FULL),
            false => (DISK_FULL, SERVING),
        };
        let changed = self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if changed.is_ok() {
            count(match is_full {
                true => &self.changes.disk_full,
                false => &self.changes.serving,
            });
        }
    }

    /// Sets the error of background work that is being retried; `None` if none is.
    pub(crate) fn set_retrying(&self, reason: Option<&str>) {
        let mut retrying = self.retrying.lock();
        if retrying.as_deref() == reason {
            return;
        }
        match (retrying.is_some(), reason.is_some()) {
            (false, true) => count(&self.changes.filing_retrying),
            (true, false) if self.is_serving() => count(&self.changes.serving),
            _ => {}
        }
        *retrying = reason.map(str::to_owned);
    }

    /// Returns the number of entries into each state.
    pub(crate) fn changes(&self) -> HealthChanges {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HealthChanges {
            serving: load(&self.changes.serving),
            filing_retrying: load(&self.changes.filing_retrying),
            disk_full: load(&self.changes.disk_full),
            filing_failed: load(&self.changes.filing_failed),
            failed: load(&self.changes.failed),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retried_work_is_a_temporary_state() {
        let health = HealthCell::default();
        health.set_retrying(Some("no descriptor"));
        health.set_retrying(Some("no memory"));
        let reason = "no memory".into();
        assert_eq!(health.get(), Health::FilingRetrying { reason });
        assert!(health.is_serving(), "appends are taken");
        health.set_retrying(None);
        assert_eq!(health.get(), Health::Serving);
        let expected = HealthChanges {
            serving: 1,
            filing_retrying: 1,
            ..HealthChanges::default()
        };
        assert_eq!(health.changes(), expected);
    }

    #[test]
    fn failure_is_permanent_with_its_first_reason() {
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

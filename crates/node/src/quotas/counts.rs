//! How many takes became what, since the node was started.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Quotas;
use super::outcome::{Outcome, Taken};

#[derive(Default)]
pub(super) struct Counts {
    admitted: AtomicU64,
    halted: AtomicU64,
    refused: AtomicU64,
    unavailable: AtomicU64,
    degraded: AtomicU64,
    /// By limit: there are no more than limits ever stood.
    denied: Mutex<BTreeMap<Arc<str>, u64>>,
}

/// How many takes became what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeCounts {
    /// Taken.
    pub admitted: u64,
    /// Denied, by the limit that would have let it pass last; of the limits that stand.
    pub denied: Vec<(Arc<str>, u64)>,
    /// Not looked at, as their prefix is halted.
    pub halted: u64,
    /// Senseless.
    pub refused: u64,
    /// Not decided, or not kept.
    pub unavailable: u64,
    /// Decided without the store that the cells lie in, whatever became of them.
    pub degraded: u64,
}

impl Quotas<'_> {
    /// How many takes became what, since the node was started; one that waits is counted at its end.
    pub fn take_counts(self) -> TakeCounts {
        let counts = &self.state().counts;
        let policies = self.policies();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let denied = counts.denied.lock();
        let standing = policies.limits().iter();
        TakeCounts {
            admitted: read(&counts.admitted),
            denied: standing
                .map(|(_, limit)| {
                    let count = denied.get(&limit.name).copied();
                    (limit.name.clone(), count.unwrap_or(0))
                })
                .collect(),
            halted: read(&counts.halted),
            refused: read(&counts.refused),
            unavailable: read(&counts.unavailable),
            degraded: read(&counts.degraded),
        }
    }

    pub(super) fn count(self, taken: &Taken) {
        let counts = &self.state().counts;
        if taken.is_degraded {
            counts.degraded.fetch_add(1, Ordering::Relaxed);
        }
        let count = match &taken.outcome {
            Outcome::Denied(denial) => {
                let mut denied = counts.denied.lock();
                match denied.get_mut(&denial.limit.name) {
                    Some(count) => *count += 1,
                    None => drop(denied.insert(denial.limit.name.clone(), 1)),
                }
                return;
            }
            Outcome::Admitted { .. } => &counts.admitted,
            Outcome::Halted { .. } => &counts.halted,
            Outcome::Refused(_) => &counts.refused,
            Outcome::Unavailable { .. } | Outcome::Unconfirmed { .. } => &counts.unavailable,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

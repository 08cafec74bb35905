//! How many takes became what, and what became of room for buckets, since the node was started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quota::{Policies, Rules};

use super::Quotas;
use super::desk::Desk;
use super::outcome::{Outcome, Taken};

#[derive(Default)]
pub(super) struct Counts {
    admitted: AtomicU64,
    denied: AtomicU64,
    halted: AtomicU64,
    refused: AtomicU64,
    unavailable: AtomicU64,
    degraded: AtomicU64,
    clock_steps: AtomicU64,
    /// Of limits that stand: others are forgotten when the limits change.
    by_limit: Mutex<BTreeMap<Arc<str>, Arc<OfLimit>>>,
}

/// What one limit did.
#[derive(Default)]
struct OfLimit {
    admitted: AtomicU64,
    denied: AtomicU64,
}

/// The counts of limits as a desk knows them, so that it looks for each once: by their places in
/// those rules.
#[derive(Default)]
pub(super) struct Counted {
    of: Option<Arc<Rules>>,
    known: Vec<Option<Arc<OfLimit>>>,
}

/// How many takes became what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeCounts {
    /// Taken.
    pub admitted: u64,
    /// Denied.
    pub denied: u64,
    /// Not looked at, as their prefix is halted.
    pub halted: u64,
    /// Senseless.
    pub refused: u64,
    /// Not decided, or not kept.
    pub unavailable: u64,
    /// Decided without the store that the cells lie in, whatever became of them.
    pub degraded: u64,
    /// Steps of the wall clock that budgets followed.
    pub clock_steps: u64,
    /// By each of the limits that stand.
    pub limits: Vec<LimitCounts>,
}

/// What became of takes by one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCounts {
    /// Its name.
    pub limit: Arc<str>,
    /// Taken from it.
    pub admitted: u64,
    /// Denied, and it would have let them pass last.
    pub denied: u64,
}

/// How many buckets there are, and how often there was no room for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketCounts {
    /// In memory.
    pub buckets: usize,
    /// One that was full made room for another.
    pub evicted: u64,
    /// None was, and what subjects share was taken from.
    pub refused: u64,
}

impl Counts {
    fn of(&self, limit: &Arc<str>) -> Arc<OfLimit> {
        let mut by_limit = self.by_limit.lock();
        match by_limit.get(limit) {
            Some(known) => known.clone(),
            None => by_limit.entry(limit.clone()).or_default().clone(),
        }
    }

    pub(super) fn count_clock_step(&self) {
        self.clock_steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets limits that do not stand any more.
    pub(super) fn follow(&self, policies: &Policies) {
        let limits = policies.limits().iter();
        let standing: BTreeSet<&Arc<str>> = limits.map(|(_, limit)| &limit.name).collect();
        let mut by_limit = self.by_limit.lock();
        by_limit.retain(|name, _| standing.contains(name));
    }

    /// Counts what the desk's last take was taken from.
    fn count_admitted(&self, desk: &mut Desk) {
        let Desk {
            plan,
            rules: Some(rules),
            counted,
            ..
        } = desk
        else {
            return;
        };
        let limits = rules.policies().limits();
        let of = counted.of.as_ref();
        if !of.is_some_and(|of| Arc::ptr_eq(of, rules)) {
            counted.of = Some(rules.clone());
            counted.known = vec![None; limits.len()];
        }
        for index in plan.taken() {
            let known = &mut counted.known[index];
            let count = known.get_or_insert_with(|| self.of(&limits[index].1.name));
            count.admitted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Quotas<'_> {
    /// How many takes became what, since the node was started; one that waits is counted at its end.
    pub fn take_counts(self) -> TakeCounts {
        let counts = &self.state().counts;
        let policies = self.policies();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let by_limit = counts.by_limit.lock();
        let limits = policies.limits().iter().map(|(_, limit)| {
            let count = by_limit.get(&limit.name);
            LimitCounts {
                limit: limit.name.clone(),
                admitted: count.map_or(0, |count| read(&count.admitted)),
                denied: count.map_or(0, |count| read(&count.denied)),
            }
        });
        TakeCounts {
            admitted: read(&counts.admitted),
            denied: read(&counts.denied),
            halted: read(&counts.halted),
            refused: read(&counts.refused),
            unavailable: read(&counts.unavailable),
            degraded: read(&counts.degraded),
            clock_steps: read(&counts.clock_steps),
            limits: limits.collect(),
        }
    }

    /// How many buckets there are, and how often there was no room for one.
    pub fn bucket_counts(self) -> BucketCounts {
        let mut counts = BucketCounts::default();
        for shard in &self.state().shards {
            let shard = shard.lock();
            let tally = shard.table.tally();
            counts.buckets += shard.table.len();
            counts.evicted += tally.evicted;
            counts.refused += tally.refused;
        }
        counts
    }

    /// Counts what became of the desk's last take.
    pub(super) fn count(self, desk: &mut Desk, taken: &Taken) {
        let counts = &self.state().counts;
        if taken.is_degraded {
            counts.degraded.fetch_add(1, Ordering::Relaxed);
        }
        let count = match &taken.outcome {
            Outcome::Denied(denial) => {
                let of = counts.of(&denial.limit.name);
                of.denied.fetch_add(1, Ordering::Relaxed);
                &counts.denied
            }
            Outcome::Admitted { is_repeat, .. } => {
                if !is_repeat {
                    counts.count_admitted(desk);
                }
                &counts.admitted
            }
            Outcome::Halted { .. } => &counts.halted,
            Outcome::Refused(_) => &counts.refused,
            Outcome::Unavailable { .. } | Outcome::Unconfirmed { .. } => &counts.unavailable,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

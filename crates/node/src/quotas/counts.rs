//! Counters of take outcomes and of bucket evictions, since the node was started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quota::{Policies, Rules};

use super::Quotas;
use super::desk::Desk;
use super::outcome::{DecidedTake, Outcome};

#[derive(Default)]
pub(super) struct Counts {
    admitted: AtomicU64,
    denied: AtomicU64,
    halted: AtomicU64,
    refused: AtomicU64,
    unavailable: AtomicU64,
    degraded: AtomicU64,
    clock_steps: AtomicU64,
    /// Counters of current limits; those of removed limits are dropped when the limits change.
    by_limit: Mutex<BTreeMap<Arc<str>, Arc<OfLimit>>>,
}

/// Counters of one limit.
#[derive(Default)]
struct OfLimit {
    admitted: AtomicU64,
    denied: AtomicU64,
}

/// Counters of limits cached in a desk, by index in its rules, so that each is looked up once.
#[derive(Default)]
pub(super) struct Counted {
    of: Option<Arc<Rules>>,
    known: Vec<Option<Arc<OfLimit>>>,
}

/// Counts of takes by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeCounts {
    /// Admitted takes.
    pub admitted: u64,
    /// Denied takes.
    pub denied: u64,
    /// Takes rejected because their prefix is halted.
    pub halted: u64,
    /// Invalid takes.
    pub refused: u64,
    /// Takes that could not be decided or stored.
    pub unavailable: u64,
    /// Takes decided without the shared store, whatever their outcome.
    pub degraded: u64,
    /// Wall-clock steps that budgets followed.
    pub clock_steps: u64,
    /// Counts per current limit.
    pub limits: Vec<LimitCounts>,
}

/// Counts of takes by one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCounts {
    /// The limit's name.
    pub limit: Arc<str>,
    /// Takes admitted by this limit.
    pub admitted: u64,
    /// Takes denied for which this limit has the latest retry time.
    pub denied: u64,
}

/// Number of buckets, and counts of evictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketCounts {
    /// Buckets in memory.
    pub buckets: usize,
    /// Full buckets that were evicted to make room for others.
    pub evicted: u64,
    /// Takes for which no bucket could be evicted, and which were charged to the shared bucket.
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

    /// Drops the counters of removed limits.
    pub(super) fn follow(&self, policies: &Policies) {
        let limits = policies.limits().iter();
        let standing: BTreeSet<&Arc<str>> = limits.map(|(_, limit)| &limit.name).collect();
        let mut by_limit = self.by_limit.lock();
        by_limit.retain(|name, _| standing.contains(name));
    }

    /// Counts the limits that the desk's last take was charged to.
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
    /// Returns the counts of takes by outcome, since the node was started; a waiting take counts
    /// when it ends.
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

    /// Returns the number of buckets and the counts of evictions.
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

    /// Counts the outcome of the desk's last take.
    pub(super) fn count(self, desk: &mut Desk, taken: &DecidedTake) {
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

//! Counters of take outcomes and of bucket evictions, since the node was started.

mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quota::{Policies, Rules};

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
    by_limit: Mutex<BTreeMap<Arc<str>, Arc<LimitCounters>>>,
}

/// Counters of one limit.
#[derive(Default)]
struct LimitCounters {
    admitted: AtomicU64,
    denied: AtomicU64,
}

/// Counters of limits cached in a desk, by index in its rules, so that each is looked up once.
#[derive(Default)]
pub(super) struct CounterCache {
    of: Option<Arc<Rules>>,
    known: Vec<Option<Arc<LimitCounters>>>,
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
    /// Takes decided without the shared store, admitted or not.
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
    fn of(&self, limit: &Arc<str>) -> Arc<LimitCounters> {
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
        let names: BTreeSet<&Arc<str>> = limits.map(|(_, limit)| &limit.name).collect();
        let mut by_limit = self.by_limit.lock();
        by_limit.retain(|name, _| names.contains(name));
    }
}

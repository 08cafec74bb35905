//! Counting of takes and buckets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{BucketCounts, Counts, LimitCounts, TakeCounts};
use crate::desk::Desk;
use crate::outcome::{DecidedTake, Outcome};
use crate::service::Quotas;

impl Counts {
    /// Counts the limits that the desk's last take was charged to.
    fn count_admitted(&self, desk: &mut Desk) {
        let Desk {
            plan,
            rules: Some(rules),
            counters,
            ..
        } = desk
        else {
            return;
        };
        let limits = rules.policies().limits();
        let of = counters.of.as_ref();
        if !of.is_some_and(|of| Arc::ptr_eq(of, rules)) {
            counters.of = Some(rules.clone());
            counters.known = vec![None; limits.len()];
        }
        for index in plan.taken() {
            let known = &mut counters.known[index];
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
    pub(crate) fn count(self, desk: &mut Desk, taken: &DecidedTake) {
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

//! Counting of takes, and collection of the sums of all shards.

use std::sync::atomic::Ordering;

use quota::{LimitId, Rules, Subject};

use super::spends::Spent;
use super::writing::UsageGuard;
use crate::cells::Shard;
use crate::service::Quotas;

const DAY_NS: u64 = 86_400_000_000_000;

impl Quotas<'_> {
    /// Returns the current day, in days since 1970-01-01 UTC.
    pub fn today(self) -> u32 {
        self.day_at(self.now_ns())
    }

    /// Returns the day of a time of the node's clock, by the wall clock.
    fn day_at(self, now_ns: u64) -> u32 {
        let shift_ns = self.state().calendar_shift_ns.load(Ordering::Relaxed);
        // A u64 has nanoseconds of 213,503 days.
        (now_ns.saturating_add_signed(shift_ns) / DAY_NS) as u32
    }

    /// Counts what a take or a hold of a subject has cost, by limit. The sums of all shards are
    /// added later, so it can be any shard that is locked.
    pub(crate) fn count_costs(
        self,
        rules: &Rules,
        subject: &Subject<'_>,
        costs: impl Iterator<Item = (LimitId, u64)>,
        shard: &mut Shard,
        now_ns: u64,
    ) {
        let hash = rules.hash_of(subject);
        let day = self.day_at(now_ns);
        shard.spends.add(day, hash, subject.name(), costs);
    }

    /// Adds the sums of all shards to the days.
    pub(crate) fn collect_usage(self, _: &UsageGuard<'_>, rules: &Rules) {
        let mut spent = Vec::new();
        for shard in &self.state().shards {
            shard.lock().spends.collect(&mut spent);
        }
        self.add_usage(rules, &spent);
    }

    /// Adds collected sums to the days.
    pub(crate) fn add_usage(self, rules: &Rules, spent: &[Spent]) {
        let mut days = self.state().usage.days.lock();
        for spent in spent {
            // A limit that was removed while the shared store decided has no usage.
            if let Some(index) = rules.policies().index(spent.limit) {
                let limit = rules.limit(index);
                days.add((&limit.name, limit.unit), spent);
            }
        }
    }

    /// Removes days that are too old.
    pub(crate) fn expire_usage(self) {
        self.state().usage.days.lock().expire(self.today());
    }
}

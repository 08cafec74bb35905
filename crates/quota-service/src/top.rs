//! Ranking of subjects and buckets by usage, debt or denied takes.

use crate::service::Quotas;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The ranking criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopBy {
    /// Denied takes since the node was started, by subject; counts of lower ranks may be too high.
    Denied,
    /// Credit used now, by bucket.
    Taken,
    /// Debt now, by bucket.
    Debt,
}

/// A row of a ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopRow {
    /// A subject, or the prefix of a bucket.
    pub name: Box<str>,
    /// The bucket's limit; `None` when ranking denied takes.
    pub limit: Option<Arc<str>>,
    /// The amount.
    pub count: u64,
}

/// Maximum number of rows.
const ROWS_MAX: usize = 1_000;

impl Quotas<'_> {
    /// Returns the highest rows. Scans every bucket, a shard at a time, unless it ranks denied
    /// takes.
    pub fn top(self, by: TopBy, count: usize) -> Vec<TopRow> {
        let count = count.min(ROWS_MAX);
        if by == TopBy::Denied {
            let row = |(name, count)| TopRow {
                name,
                limit: None,
                count,
            };
            return self
                .state()
                .denied
                .lock()
                .top(count)
                .into_iter()
                .map(row)
                .collect();
        }
        let (now_ns, rules) = (self.now_ns(), self.rules());
        let mut first = BinaryHeap::<Reverse<(u64, quota::LimitId, String)>>::new();
        for shard in &self.state().shards {
            shard.lock().table.walk(0, usize::MAX, |key, cell| {
                let Some((have, capacity)) = rules.balance(key, cell, now_ns) else {
                    return;
                };
                let amount = match by {
                    TopBy::Debt => -have,
                    TopBy::Taken | TopBy::Denied => i128::from(capacity) - have,
                };
                let amount = u64::try_from(amount.max(0)).unwrap_or(u64::MAX);
                let is_among = first.len() < count
                    || first
                        .peek()
                        .is_some_and(|Reverse((least, ..))| amount > *least);
                if amount > 0 && is_among {
                    first.push(Reverse((amount, key.limit, key.prefix.to_string())));
                    if first.len() > count {
                        first.pop();
                    }
                }
            });
        }
        let rows = first
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse((count, limit, name))| {
                let index = rules.policies().index(limit);
                TopRow {
                    name: name.into(),
                    limit: index.map(|index| rules.limit(index).name.clone()),
                    count,
                }
            });
        rows.collect()
    }
}

//! Comparison of what a writer reads back with what was acknowledged to it.

use std::collections::{BTreeMap, BTreeSet};

/// Differences between the stored and the acknowledged records of one writer.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Acknowledged records that are missing.
    pub(crate) lost: u64,
    /// Records that are present more than once.
    pub(crate) duplicated: u64,
    /// Records that come after a later record of the same writer.
    pub(crate) reordered: u64,
    /// Positions that hold a different record than the acknowledged one.
    pub(crate) reused: u64,
    /// Records that were never sent, or have different content.
    pub(crate) foreign: u64,
    /// Numbers of all records that are present.
    pub(crate) present: BTreeSet<u64>,
}

impl Comparison {
    /// Compares records in reading order, given as position and number. A record that the writer
    /// did not write has no number. `acked` maps acknowledged positions to numbers.
    pub(crate) fn of(
        acked: &BTreeMap<u64, u64>,
        found: impl IntoIterator<Item = (u64, Option<u64>)>,
    ) -> Self {
        let mut comparison = Self::default();
        let mut last = 0;
        for (position, number) in found {
            let Some(number) = number else {
                comparison.foreign += 1;
                continue;
            };
            if !comparison.present.insert(number) {
                comparison.duplicated += 1;
            } else if number < last {
                comparison.reordered += 1;
            }
            last = last.max(number);
            let promised = acked.get(&position);
            comparison.reused += u64::from(promised.is_some_and(|promised| *promised != number));
        }
        let is_lost = |number: &&u64| !comparison.present.contains(number);
        comparison.lost = acked.values().filter(is_lost).count() as u64;
        comparison
    }
}

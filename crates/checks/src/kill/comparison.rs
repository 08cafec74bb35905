//! Comparison of what a writer reads back with what was acknowledged to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use serde::Serialize;

/// Counts of records that differ from what was acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Violations {
    /// Acknowledged records that are missing.
    pub lost: u64,
    /// Records that are present more than once.
    pub duplicated: u64,
    /// Records that come after a later record of the same writer.
    pub reordered: u64,
    /// Positions that were acknowledged for two records, or that hold a different record.
    pub reused: u64,
    /// Records that were never sent, or have different content.
    pub foreign: u64,
}

impl Violations {
    /// Returns true if all counts are 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Violations {
    fn add_assign(&mut self, other: Self) {
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.reused += other.reused;
        self.foreign += other.foreign;
    }
}

/// Differences between the stored and the acknowledged records of one writer.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) violations: Violations,
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
        let (mut violations, mut present) = (Violations::default(), BTreeSet::new());
        let mut last = 0;
        for (position, number) in found {
            let Some(number) = number else {
                violations.foreign += 1;
                continue;
            };
            if !present.insert(number) {
                violations.duplicated += 1;
            } else if number < last {
                violations.reordered += 1;
            }
            last = last.max(number);
            let promised = acked.get(&position);
            violations.reused += u64::from(promised.is_some_and(|promised| *promised != number));
        }
        let is_lost = |number: &&u64| !present.contains(number);
        violations.lost = acked.values().filter(is_lost).count() as u64;
        Self {
            violations,
            present,
        }
    }
}

//! Numbers of retracted messages, as ranges.

use std::sync::Arc;

/// Maximum number of ranges of a conversation; ranges that adjoin count as one.
pub(crate) const RANGES_MAX: usize = 1_024;

/// A range of sequence numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqRange {
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
}

/// The numbers of a conversation that have no message any more because of retractions: ranges in
/// order that neither overlap nor adjoin. Clones share the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retracted(Arc<[SeqRange]>);

impl Retracted {
    /// Creates the set from its ranges; `None` if they overlap, adjoin or are out of order.
    pub fn from_ranges(ranges: Vec<SeqRange>) -> Option<Self> {
        let is_range = |range: &SeqRange| (1..=range.last).contains(&range.first);
        let is_apart = |pair: &[SeqRange]| pair[0].last.saturating_add(1) < pair[1].first;
        let is_valid = ranges.iter().all(is_range) && ranges.windows(2).all(is_apart);
        is_valid.then(|| Self(ranges.into()))
    }

    /// Returns whether no number was retracted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ranges, in order.
    pub fn ranges(&self) -> &[SeqRange] {
        &self.0
    }

    /// Returns the range that contains a number.
    pub fn range_of(&self, seq: u64) -> Option<SeqRange> {
        let range = self.0.get(self.ended_before(seq))?;
        (range.first <= seq).then_some(*range)
    }

    /// Returns whether a number was retracted.
    pub fn contains(&self, seq: u64) -> bool {
        self.range_of(seq).is_some()
    }

    /// Returns the first number from `seq` on that was not retracted.
    pub fn next_live(&self, seq: u64) -> u64 {
        self.range_of(seq)
            .map_or(seq, |range| range.last.saturating_add(1))
    }

    /// Returns the last number up to `seq` that was not retracted; 0 for none.
    pub fn newest_live(&self, seq: u64) -> u64 {
        self.range_of(seq).map_or(seq, |range| range.first - 1)
    }

    /// Returns the last number before the first range after `seq`.
    pub fn live_until(&self, seq: u64) -> u64 {
        let next = self.0.get(self.ended_before(seq));
        next.map_or(u64::MAX, |range| range.first.saturating_sub(1))
    }

    /// Returns the number after the last range before `seq`.
    pub fn live_from(&self, seq: u64) -> u64 {
        let before = self.ended_before(seq).checked_sub(1);
        before.map_or(1, |index| self.0[index].last.saturating_add(1))
    }

    /// Returns how many numbers from `first` to `last` were retracted.
    pub fn count(&self, first: u64, last: u64) -> u64 {
        let cut = self.0.iter().map(|range| {
            let end = range.last.min(last).saturating_add(1);
            end.saturating_sub(range.first.max(first))
        });
        cut.sum()
    }

    /// Returns the first of the `count` newest numbers from `floor` to `head` that were not
    /// retracted, or of all if they are fewer; `None` if there are none.
    pub fn first_of_newest(&self, floor: u64, head: u64, count: u64) -> Option<u64> {
        let (mut left, mut end, mut found) = (count, head, None);
        while left > 0 {
            end = self.newest_live(end);
            if end < floor.max(1) {
                break;
            }
            let first = self.live_from(end).max(floor.max(1));
            let taken = (end + 1 - first).min(left);
            left -= taken;
            found = Some(end + 1 - taken);
            end -= taken;
        }
        found
    }

    /// Returns the set with another range, and without those that end before `floor`.
    #[must_use]
    pub fn with(&self, range: SeqRange, floor: u64) -> Self {
        let mut merged = range;
        let mut ranges = Vec::with_capacity(self.0.len() + 1);
        for other in self.0.iter().filter(|it| it.last >= floor) {
            if other.last.saturating_add(1) < merged.first {
                ranges.push(*other);
            } else if merged.last.saturating_add(1) >= other.first {
                merged.first = merged.first.min(other.first);
                merged.last = merged.last.max(other.last);
            } else {
                ranges.push(merged);
                merged = *other;
            }
        }
        ranges.push(merged);
        Self(ranges.into())
    }

    /// Returns the part of the set up to a number.
    #[must_use]
    pub fn up_to(&self, seq: u64) -> Self {
        let cut = self.0.iter().filter(|range| range.first <= seq);
        let cut = cut.map(|range| SeqRange {
            last: range.last.min(seq),
            ..*range
        });
        Self(cut.collect())
    }

    /// Returns the number of ranges that end before a number.
    fn ended_before(&self, seq: u64) -> usize {
        self.0.partition_point(|range| range.last < seq)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const HEAD: u64 = 40;

    proptest! {
        #[test]
        fn ranges_answer_like_a_set_of_numbers(
            added in prop::collection::vec((1..HEAD, 0_u64..6), 0..12),
            floor in 0..HEAD,
            count in 0..HEAD,
        ) {
            let mut retracted = Retracted::default();
            let mut model = BTreeSet::new();
            for (first, more) in added {
                let last = (first + more).min(HEAD);
                retracted = retracted.with(SeqRange { first, last }, 0);
                model.extend(first..=last);
            }
            let again = Retracted::from_ranges(retracted.ranges().to_vec());
            prop_assert_eq!(again.as_ref(), Some(&retracted));
            for seq in 1..=HEAD {
                prop_assert_eq!(retracted.contains(seq), model.contains(&seq));
                let next = (seq..).find(|it| !model.contains(it));
                prop_assert_eq!(Some(retracted.next_live(seq)), next);
                let newest = (0..=seq).rev().find(|it| !model.contains(it));
                prop_assert_eq!(Some(retracted.newest_live(seq)), newest);
                if !model.contains(&seq) {
                    let until = retracted.live_until(seq).min(HEAD);
                    prop_assert!((seq..=until).all(|it| !model.contains(&it)));
                    prop_assert!(until == HEAD || model.contains(&(until + 1)));
                    let from = retracted.live_from(seq);
                    prop_assert!((from..=seq).all(|it| !model.contains(&it)));
                    prop_assert!(from == 1 || model.contains(&(from - 1)));
                }
                let inside = model.range(floor..=seq.max(floor)).count() as u64;
                prop_assert_eq!(retracted.count(floor, seq.max(floor)), inside);
                let cut: Vec<_> = (1..=HEAD).filter(|it| retracted.up_to(seq).contains(*it)).collect();
                let expected: Vec<_> = model.range(..=seq).copied().collect();
                prop_assert_eq!(cut, expected);
            }
            let live = (floor.max(1)..=HEAD).rev().filter(|it| !model.contains(it));
            let newest = live.take(count as usize).last();
            prop_assert_eq!(retracted.first_of_newest(floor, HEAD, count), newest);
        }
    }

    #[test]
    fn malformed_ranges_are_refused() {
        let check = |ranges: &[(u64, u64)], is_valid| {
            let ranges = ranges.iter().map(|(first, last)| SeqRange {
                first: *first,
                last: *last,
            });
            let retracted = Retracted::from_ranges(ranges.collect());
            assert_eq!(retracted.is_some(), is_valid);
        };
        check(&[], true);
        check(&[(1, 1), (3, 4)], true);
        check(&[(0, 1)], false);
        check(&[(2, 1)], false);
        check(&[(1, 2), (3, 4)], false);
        check(&[(3, 4), (1, 1)], false);
    }

    #[test]
    fn ranges_below_the_floor_are_dropped() {
        let range = |first, last| SeqRange { first, last };
        let retracted = Retracted::default()
            .with(range(1, 2), 0)
            .with(range(5, 6), 0);
        assert_eq!(
            retracted.with(range(9, 9), 3).ranges(),
            [range(5, 6), range(9, 9)]
        );
    }
}

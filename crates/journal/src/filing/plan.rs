//! Selects the extents of a shard to merge next.
//!
//! Extents are sorted by size into tiers, each four times the previous one. Four neighbours of one
//! tier, with smaller ones between them, become one. So few extents are left per tier and a stream
//! is in O(log n) extents, while each byte is copied about once per tier. If streams already have
//! long contiguous runs, as those of a busy topic do, merging hardly makes reads faster: then
//! sixteen become one, and each byte is copied half as often. An extent with more than half dead
//! bytes is rewritten without them. An extent with erased bytes has priority over all others.

use std::ops::Range;

use crate::extent::SIZE_MAX;

/// Extents of one tier per merge.
const MERGE_COUNT: usize = 4;

/// Extents per merge if each stream has [`LONG_SIZE`] bytes or more in an extent.
const MERGE_COUNT_LONG: usize = 16;

/// Bytes of a contiguous run that is so long that seeking to it is negligible.
const LONG_SIZE: u64 = 1 << 20;

/// Extents per merge at most.
const WIDTH_MAX: usize = 32;

/// The smallest tier, in bytes.
const TIER_SIZE: u64 = 64 << 10;

/// An extent and its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Bytes of the file.
    pub(super) size: u64,
    /// Bytes of payloads.
    pub(super) bytes: u64,
    /// Number of its streams.
    pub(super) streams: u64,
    /// Dead bytes of payloads.
    pub(super) dead: u64,
    /// Some bytes must be erased.
    pub(super) is_unerased: bool,
    /// A merge of the extent is in progress.
    pub(super) is_busy: bool,
}

impl Candidate {
    fn tier(&self) -> u32 {
        (self.size / TIER_SIZE)
            .checked_ilog(4)
            .map_or(0, |tier| tier + 1)
    }

    fn is_half_dead(&self) -> bool {
        self.dead > self.bytes / 2
    }

    /// Returns how many extents like this one are merged at once.
    fn merge_count(&self) -> usize {
        match self.bytes / self.streams.max(1) >= LONG_SIZE {
            true => MERGE_COUNT_LONG,
            false => MERGE_COUNT,
        }
    }
}

/// The purpose of a merge, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    Erase,
    Room,
    Order,
}

/// Returns the next merge of a shard. `extents` are oldest first.
pub(super) fn next(extents: &[Candidate]) -> Option<(Purpose, Range<usize>)> {
    let one = |wanted: fn(&Candidate) -> bool| {
        let place = extents
            .iter()
            .position(|extent| !extent.is_busy && wanted(extent));
        place.map(|place| place..place + 1)
    };
    let erase = one(|extent| extent.is_unerased).map(|range| (Purpose::Erase, range));
    let room = || one(Candidate::is_half_dead).map(|range| (Purpose::Room, range));
    let order = || {
        tiered(extents)
            .or_else(|| closest(extents))
            .map(|range| (Purpose::Order, range))
    };
    erase.or_else(room).or_else(order)
}

/// Returns true if there are so many extents that filing should wait for merging.
pub(super) fn is_behind(extents: &[Candidate]) -> bool {
    extents.len() > 2 * count_max(extents)
}

/// Returns the number of extents that a shard may have without a due merge.
pub(super) fn count_max(extents: &[Candidate]) -> usize {
    let total = extents.iter().map(|extent| extent.size).sum();
    let tiers = Candidate {
        size: total,
        ..Candidate::default()
    }
    .tier() as usize
        + 1;
    let counts = extents.iter().map(Candidate::merge_count);
    counts.max().unwrap_or(MERGE_COUNT) * tiers
}

/// Finds enough neighbours of one tier, the lowest tier first.
fn tiered(extents: &[Candidate]) -> Option<Range<usize>> {
    let tiers = extents.iter().map(Candidate::tier).max()?;
    (0..=tiers).find_map(|tier| {
        let mut at = 0;
        while at < extents.len() {
            let run = extents[at..]
                .iter()
                .take_while(|extent| !extent.is_busy && extent.tier() <= tier)
                .count();
            if let Some(range) = of_tier(&extents[at..at + run], tier) {
                return Some(at + range.start..at + range.end);
            }
            at += run + 1;
        }
        None
    })
}

/// Returns the range from the first to the last extent of a tier, if there are enough and the
/// result is not too large.
fn of_tier(run: &[Candidate], tier: u32) -> Option<Range<usize>> {
    let places: Vec<usize> = (0..run.len())
        .filter(|&place| run[place].tier() == tier)
        .collect();
    let counts = places.iter().map(|&place| run[place].merge_count());
    let count = counts.min().unwrap_or(MERGE_COUNT);
    let first = *places.first().filter(|_| places.len() >= count)?;
    let end = (first + WIDTH_MAX).min(*places.last()? + 1);
    (first + 2..=end)
        .rev()
        .find(|&end| fits(&run[first..end]))
        .map(|end| first..end)
}

/// Returns the smallest two neighbours, if there are too many extents. It bounds their number when
/// trims left small extents between large ones.
fn closest(extents: &[Candidate]) -> Option<Range<usize>> {
    let is_settled = extents.iter().all(|extent| !extent.is_busy);
    if !is_settled || extents.len() <= count_max(extents) {
        return None;
    }
    let pairs = extents.windows(2).enumerate();
    let free = pairs.filter(|(_, pair)| fits(pair));
    let (place, _) = free.min_by_key(|(_, pair)| pair[0].size + pair[1].size)?;
    Some(place..place + 2)
}

fn fits(extents: &[Candidate]) -> bool {
    extents.iter().map(|extent| extent.size).sum::<u64>() <= SIZE_MAX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes(sizes: &[u64]) -> Vec<Candidate> {
        let candidate = |&size| Candidate {
            size,
            bytes: size,
            streams: size,
            ..Candidate::default()
        };
        sizes.iter().map(candidate).collect()
    }

    fn of_one_stream(size: u64) -> Candidate {
        Candidate {
            size,
            bytes: size,
            streams: 1,
            ..Candidate::default()
        }
    }

    #[test]
    fn four_extents_of_a_tier_are_merged_with_smaller_neighbours() {
        let (large, small) = (10 << 20, 1000);
        assert_eq!(next(&sizes(&[large, large, large])), None);
        let extents = sizes(&[small, large, large, small, large, large, small]);
        assert_eq!(next(&extents), Some((Purpose::Order, 1..6)));
    }

    #[test]
    fn large_extent_is_not_merged_with_small_ones() {
        let extents = sizes(&[1 << 30, 1000, 1000, 1000, 1000]);
        assert_eq!(next(&extents), Some((Purpose::Order, 1..5)));
    }

    #[test]
    fn sixteen_extents_are_merged_if_streams_have_long_runs() {
        let extents = [of_one_stream(60 << 20); 16];
        assert_eq!(next(&extents[1..]), None);
        assert_eq!(next(&extents), Some((Purpose::Order, 0..16)));
        let mut mixed = extents;
        mixed[3].streams = 1_000;
        assert_eq!(next(&mixed), Some((Purpose::Order, 0..16)));
        assert_eq!(next(&mixed[..4]), Some((Purpose::Order, 0..4)));
    }

    #[test]
    fn extents_being_merged_are_not_planned_again() {
        let mut extents = sizes(&[1000; 7]);
        extents[3].is_busy = true;
        assert_eq!(next(&extents), None);
        extents[3].is_busy = false;
        assert_eq!(next(&extents), Some((Purpose::Order, 0..7)));
    }

    #[test]
    fn erased_bytes_have_priority_over_dead_bytes() {
        let mut extents = sizes(&[1000; 8]);
        extents[5].dead = 501;
        assert_eq!(next(&extents), Some((Purpose::Room, 5..6)));
        extents[7].is_unerased = true;
        assert_eq!(next(&extents), Some((Purpose::Erase, 7..8)));
    }

    #[test]
    fn merged_extent_never_exceeds_the_size_limit() {
        let extents = sizes(&[SIZE_MAX / 3; 9]);
        assert_eq!(next(&extents), Some((Purpose::Order, 0..3)));
        assert_eq!(next(&sizes(&[SIZE_MAX / 2 + 1; 9])), None);
    }

    proptest! {
        #[test]
        fn merging_leaves_few_extents_and_copies_once_per_tier(
            sizes in proptest::collection::vec((1..(64_u64 << 20), 1_u64..1_000), 1..300),
        ) {
            let (mut extents, mut copied, mut filed) = (Vec::new(), 0, 0);
            for (size, streams) in sizes {
                filed += size;
                extents.push(Candidate { streams, ..of_one_stream(size) });
                while let Some((_, range)) = next(&extents) {
                    prop_assert!(range.len() >= 2);
                    let size = extents[range.clone()].iter().map(|extent| extent.size).sum();
                    let streams = extents[range.clone()].iter().map(|extent| extent.streams).max();
                    copied += size;
                    let merged = Candidate { streams: streams.unwrap_or(1), ..of_one_stream(size) };
                    extents.splice(range, [merged]);
                }
                prop_assert!(extents.len() <= count_max(&extents));
            }
            let all = Candidate { size: filed, ..Candidate::default() };
            prop_assert!(copied <= filed * (u64::from(all.tier()) + 1));
        }
    }
}

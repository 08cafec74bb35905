//! Selects the extents of a shard to merge next.
//!
//! Extents are sorted by size into tiers, each four times the previous one. Four neighbours of one
//! tier, with smaller ones between them, become one. So few extents are left per tier and a stream
//! is in O(log n) extents, while each byte is copied about once per tier. If streams already have
//! long contiguous runs, as those of a busy topic do, merging hardly makes reads faster: then
//! sixteen become one, and each byte is copied half as often. An extent with more than half dead
//! bytes is rewritten without them. An extent with erased bytes has priority over all others.
//!
//! An extent in place has long pieces, so it is copied only if its segment is to be removed, or if there
//! are so many that their number matters: then the oldest are merged with all between them. The
//! segment has the bytes of several shards. When the extent of one is rewritten, those of the others
//! are too: its bytes are on the disk twice until then.

use std::ops::Range;

use crate::extent::SIZE_MAX;

/// Extents of one tier per merge.
const MERGE_COUNT: usize = 4;

/// Extents per merge if each stream has [`LONG_SIZE`] bytes or more in an extent.
const MERGE_COUNT_LONG: usize = 16;

/// Bytes of a contiguous run that is so long that seeking to it is negligible.
const LONG_SIZE: u64 = 1 << 20;

/// Extents in place that a shard may have without a due merge. Each is in a segment of its own, whose
/// file is open.
const IN_PLACE_MAX: usize = 256;

/// Extents per merge at most.
const WIDTH_MAX: usize = 32;

/// The smallest tier, in bytes.
const TIER_SIZE: u64 = 64 << 10;

/// An extent and its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Bytes of the file, and of its pieces of a segment.
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
    /// The extent refers to a segment. Dead bytes, and bytes to erase, are those of all its extents.
    pub(super) is_in_place: bool,
    /// Other extents of the segment are rewritten already.
    pub(super) is_broken_up: bool,
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

    /// Returns true if the extent may be merged only to put records of a stream together.
    fn is_free(&self) -> bool {
        !self.is_busy && !self.is_in_place
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
    let room = || {
        one(Candidate::is_half_dead)
            .or_else(|| broken_up(extents))
            .map(|range| (Purpose::Room, range))
    };
    let order = || {
        tiered(extents)
            .or_else(|| closest(extents))
            .or_else(|| oldest_in_place(extents))
            .map(|range| (Purpose::Order, range))
    };
    erase.or_else(room).or_else(order)
}

/// Returns true if there are so many extents that filing should wait for merging.
pub(super) fn is_behind(extents: &[Candidate]) -> bool {
    let in_place = count(extents, |extent| extent.is_in_place);
    extents.len() - in_place > 2 * count_max(extents) || in_place > 2 * IN_PLACE_MAX
}

fn count(extents: &[Candidate], wanted: fn(&Candidate) -> bool) -> usize {
    extents.iter().filter(|extent| wanted(extent)).count()
}

/// Returns the number of extents that a shard may have without a due merge, except for those in place.
pub(super) fn count_max(extents: &[Candidate]) -> usize {
    let own = || extents.iter().filter(|extent| !extent.is_in_place);
    let total = own().map(|extent| extent.size).sum();
    let tiers = Candidate {
        size: total,
        ..Candidate::default()
    }
    .tier() as usize
        + 1;
    let counts = own().map(Candidate::merge_count);
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
                .take_while(|extent| extent.is_free() && extent.tier() <= tier)
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
    let own = count(extents, |extent| !extent.is_in_place);
    if !is_settled || own <= count_max(extents) {
        return None;
    }
    let pairs = extents.windows(2).enumerate();
    let free = pairs.filter(|(_, pair)| pair.iter().all(Candidate::is_free) && fits(pair));
    let (place, _) = free.min_by_key(|(_, pair)| pair[0].size + pair[1].size)?;
    Some(place..place + 2)
}

/// Returns neighbours whose segments are broken up.
fn broken_up(extents: &[Candidate]) -> Option<Range<usize>> {
    let is_wanted = |extent: &Candidate| extent.is_broken_up && !extent.is_busy;
    let first = extents.iter().position(is_wanted)?;
    let rest = extents[first..].iter().take(WIDTH_MAX);
    let end = first + rest.take_while(|extent| is_wanted(extent)).count();
    (first + 1..=end)
        .rev()
        .find(|&end| fits(&extents[first..end]))
        .map(|end| first..end)
}

/// Returns the oldest extents in place, with all others between them, if there are too many.
fn oldest_in_place(extents: &[Candidate]) -> Option<Range<usize>> {
    let in_place = (0..extents.len()).filter(|&place| extents[place].is_in_place);
    let places: Vec<usize> = in_place.collect();
    if places.len() <= IN_PLACE_MAX {
        return None;
    }
    let first = places[0];
    let end = (first + WIDTH_MAX).min(places[MERGE_COUNT_LONG - 1] + 1);
    (first + 1..=end)
        .rev()
        .find(|&end| {
            let range = &extents[first..end];
            range.iter().all(|extent| !extent.is_busy) && fits(range)
        })
        .map(|end| first..end)
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

    fn in_place(size: u64) -> Candidate {
        Candidate {
            is_in_place: true,
            ..of_one_stream(size)
        }
    }

    #[test]
    fn extents_in_place_are_merged_only_when_there_are_too_many() {
        let small = of_one_stream(1_000);
        let mut extents = vec![small; 20];
        for place in (1..20).step_by(2) {
            extents[place] = in_place(60 << 20);
        }
        assert_eq!(next(&extents), None, "no neighbours of a tier");
        let mut extents = vec![in_place(60 << 20); IN_PLACE_MAX];
        extents.insert(0, small);
        extents.insert(4, small);
        assert_eq!(next(&extents), None);
        assert!(!is_behind(&extents));
        extents.push(in_place(60 << 20));
        assert_eq!(next(&extents), Some((Purpose::Order, 1..18)));
        extents[3].is_busy = true;
        assert_eq!(next(&extents), Some((Purpose::Order, 1..3)));
        extents[1].is_busy = true;
        assert_eq!(next(&extents), None);
    }

    #[test]
    fn broken_up_segments_are_rewritten_before_order_merges() {
        let mut extents = vec![in_place(60 << 20); 6];
        for place in [1, 2, 3, 5] {
            extents[place].is_broken_up = true;
        }
        extents.extend([of_one_stream(1_000); 16]);
        assert_eq!(next(&extents), Some((Purpose::Room, 1..4)));
        extents[2].is_busy = true;
        assert_eq!(next(&extents), Some((Purpose::Room, 1..2)));
        extents[3].is_unerased = true;
        assert_eq!(next(&extents), Some((Purpose::Erase, 3..4)));
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

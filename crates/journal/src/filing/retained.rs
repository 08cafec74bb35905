//! Sums over the extents that refer to one retained segment, which is removed as a whole.

use std::collections::BTreeMap;

use super::census::Census;
use crate::extent::{Extent, ExtentSet};

/// The extents in place of each retained segment, by its sequence.
#[derive(Debug, Default)]
pub(super) struct SegmentUses(BTreeMap<u64, SegmentUse>);

/// The extents that refer to one segment, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentUse {
    /// Bytes of payloads.
    pub(super) bytes: u64,
    /// Dead bytes of payloads.
    pub(super) dead: u64,
    /// Some bytes must be erased.
    pub(super) is_unerased: bool,
    /// Other extents that referred to the segment are rewritten already, so their bytes are in it
    /// twice.
    pub(super) is_broken_up: bool,
    extents: u64,
}

impl SegmentUses {
    /// Adds up the counts of all extents in place.
    pub(super) fn count(extents: &ExtentSet, census: &Census) -> SegmentUses {
        let mut uses = SegmentUses::default();
        for extent in extents.iter() {
            let Some(segment) = extent.segment() else {
                continue;
            };
            let count = census.count(extent.identity().number);
            let used = uses.0.entry(segment.sequence).or_default();
            used.bytes += extent.bytes();
            used.dead += count.dead;
            used.is_unerased |= count.is_unerased;
            used.extents += 1;
            used.is_broken_up = used.extents < segment.extents;
        }
        uses
    }

    /// Returns the sums of an extent's segment; `None` if the extent is not in place.
    pub(super) fn of(&self, extent: &Extent) -> Option<SegmentUse> {
        self.0.get(&extent.segment()?.sequence).copied()
    }

    /// Returns true if some extents of a segment are rewritten and others are not.
    pub(super) fn has_broken_up(&self) -> bool {
        self.0.values().any(|used| used.is_broken_up)
    }
}

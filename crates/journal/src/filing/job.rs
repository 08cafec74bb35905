//! Filing of a segment, piece by piece, and helpers shared with merging.

use std::sync::Arc;

use super::collect::{Share, SortMemory, SortedSegment};
use super::{Erasures, FilingError, Line, SealedSegment};
use crate::disk::{Disk, sync_names, write_zeros};
use crate::extent::{self, Extent, Identity, RetainedSegments, SegmentRef, Writer};
use crate::manifest::Manifest;
use crate::{Index, Position, ShardId};

/// Bytes of the unused end of a file that are zeroed per step. The line's own syncs may have to wait
/// behind that much.
const REST_STEP_SIZE: u64 = 256 << 10;

/// A segment that is being filed.
#[derive(Debug)]
pub(super) struct FilingJob {
    pub(super) sealed: SealedSegment,
    pub(super) generation: u64,
    begin: Position,
    sorted: SortedSegment,
    /// Shards that are not written yet.
    left: Vec<ShardId>,
    /// The extents that will be in place, if any.
    in_place: Option<InPlace>,
    writer: Option<Writer>,
    written: Vec<Identity>,
}

/// The part of a segment that stays where it is.
#[derive(Debug)]
struct InPlace {
    segment: SegmentRef,
    shards: Vec<ShardId>,
    /// The unused end of the file that may have old bytes: offset and size.
    rest: Option<(u64, u64)>,
}

/// Decides whether a segment's records are copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement<'a> {
    /// Smallest mean size of the pieces of an extent in place; `None` copies everything.
    pub(super) piece_size_min: Option<u64>,
    /// The file may have bytes of an earlier segment after its blocks.
    pub(super) is_stale: bool,
    pub(super) erasures: &'a Erasures,
}

impl FilingJob {
    /// Reads the segment, in `memory` as far as that is large enough. Everything before `begin` must be
    /// filed.
    pub(super) fn begin(
        sealed: SealedSegment,
        begin: Position,
        generation: u64,
        memory: SortMemory,
        line: &dyn Line,
        placement: Placement<'_>,
    ) -> Result<FilingJob, FilingError> {
        let sorted = SortedSegment::read(&sealed, memory)?;
        let shards = sorted.shards().filter(|(_, share)| !share.is_empty());
        let mut left: Vec<ShardId> = shards.map(|(shard, _)| shard).collect();
        left.reverse();
        let in_place = place(&sealed, &sorted, line, placement);
        let written = Vec::new();
        Ok(FilingJob {
            sealed,
            generation,
            begin,
            sorted,
            left,
            in_place,
            writer: None,
            written,
        })
    }

    /// Returns true if extents will refer to the segment.
    pub(super) fn is_in_place(&self) -> bool {
        self.in_place.is_some()
    }

    /// Writes about `budget` bytes. Returns true after the last.
    pub(super) fn advance(
        &mut self,
        disk: &dyn Disk,
        line: &dyn Line,
        manifest: &mut Manifest,
        budget: u64,
    ) -> Result<bool, FilingError> {
        if self.clear_rest()? {
            return Ok(false);
        }
        let Some(&shard) = self.left.last() else {
            return Ok(true);
        };
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let identity = self.identity(shard, manifest);
                // Listed before it exists, so that a failure removes it.
                self.written.push(identity);
                let in_place = self.in_place.as_ref();
                match in_place.filter(|in_place| in_place.shards.contains(&shard)) {
                    Some(in_place) => Writer::create_in_place(disk, identity, in_place.segment)?,
                    None => Writer::create(disk, identity)?,
                }
            }
        };
        if self.sorted.write(shard, line, &mut writer, budget)? {
            writer.finish()?;
            self.left.pop();
        } else {
            self.writer = Some(writer);
        }
        Ok(self.left.is_empty())
    }

    /// Zeroes some of the unused end of a file that stays. Returns false if there is nothing to do.
    fn clear_rest(&mut self) -> Result<bool, FilingError> {
        let Some(in_place) = &mut self.in_place else {
            return Ok(false);
        };
        let Some((offset, size)) = in_place.rest else {
            return Ok(false);
        };
        let file = &*self.sealed.segment.file;
        let now = size.min(REST_STEP_SIZE);
        write_zeros(file, offset, now)?;
        file.write_out(offset, now)?;
        in_place.rest = (now < size).then_some((offset + now, size - now));
        if in_place.rest.is_none() {
            file.sync_data()?;
        }
        Ok(true)
    }

    /// Returns the segment, and the memory that it was read into and sorted in.
    pub(super) fn into_parts(self) -> (SealedSegment, SortMemory) {
        (self.sealed, self.sorted.into_memory())
    }

    /// Returns the extents that were written.
    pub(super) fn extents(&self) -> &[Identity] {
        &self.written
    }

    /// Updates the manifest for the filed segment.
    pub(super) fn update_manifest(&self, manifest: &mut Manifest) {
        manifest.filed = self.end();
        manifest.sequence = self.sealed.segment.header.sequence;
        for (shard, share) in self.sorted.shards() {
            let Some(known) = manifest.shards.get_mut(usize::from(shard.0)) else {
                continue;
            };
            if share.index > known.index {
                (known.index, known.term) = (share.index, share.term);
            }
        }
        if self.sorted.has_lost {
            self.note_lost(manifest);
        } else if !self.sealed.is_inherited {
            // Segments that this run began continue the earlier ones.
            manifest.has_lost = false;
        }
        for extent in &self.written {
            if let Some(shard) = manifest.shards.get_mut(usize::from(extent.shard.0)) {
                shard.extents.push(*extent);
            }
        }
    }

    /// Counts blocks whose loss was accepted as filed, so that no start looks for them.
    fn note_lost(&self, manifest: &mut Manifest) {
        manifest.has_lost = true;
        manifest.has_holes = true;
        let ends = manifest.shards.iter_mut().zip(&self.sealed.shards);
        for (number, (known, end)) in ends.enumerate() {
            let cuts = self.sealed.cuts.iter().filter(|cut| {
                usize::from(cut.shard.0) == number && cut.position >= self.sealed.end
            });
            let valid = cuts.map(|cut| Index(cut.index.0 - 1)).min();
            let index = valid.unwrap_or(end.index).min(end.index);
            if index > known.index {
                (known.index, known.term) = (index, end.term);
            }
        }
    }

    /// Removes the written extents. The next start removes those for which it fails.
    pub(super) fn abandon(&self, disk: &dyn Disk) {
        abandon(disk, &self.written);
    }

    fn identity(&self, shard: ShardId, manifest: &mut Manifest) -> Identity {
        let number = manifest.extent_next;
        manifest.extent_next += 1;
        let share = self.sorted.shards().find(|(other, _)| *other == shard);
        let (index, term) = share.map_or((Index(0), 0), |(_, share)| (share.index, share.term));
        let (begin, end) = (self.begin, self.end());
        Identity {
            journal_id: manifest.journal_id,
            shard,
            number,
            begin,
            end,
            index,
            term,
        }
    }

    /// Returns the end of the file, including its unused rest: the next segment's positions begin
    /// there.
    fn end(&self) -> Position {
        self.sealed.segment.header.limit()
    }
}

/// Decides whether all records of a segment stay in it: if they lie in long pieces and are at least half
/// of the file. A part of them could not stay, because the bytes of a copied record that is erased
/// later would be in the segment too, and no extent would say so.
fn place(
    sealed: &SealedSegment,
    sorted: &SortedSegment,
    line: &dyn Line,
    placement: Placement<'_>,
) -> Option<InPlace> {
    let piece_size_min = placement.piece_size_min?;
    if sorted.has_lost || sorted.has_void {
        return None;
    }
    let header = &sealed.segment.header;
    let bytes: u64 = sorted.shards().map(|(_, share)| share.bytes()).sum();
    if bytes < header.size / 2 {
        return None;
    }
    let mut left = usize::try_from(bytes / piece_size_min.max(1)).ok()?;
    for (_, share) in sorted.shards() {
        left = left.checked_sub(share.count_entries(left))?;
    }
    let has_erased =
        |(shard, share): (ShardId, &Share)| share.has_erased(shard, placement.erasures);
    if sorted.shards().any(has_erased) {
        return None;
    }
    let live = |(shard, share): (ShardId, &Share)| share.live_bytes(shard, line);
    if sorted.shards().map(live).sum::<u64>() < header.size / 2 {
        return None;
    }
    let shards = sorted.shards().filter(|(_, share)| share.has_records());
    let shards: Vec<ShardId> = shards.map(|(shard, _)| shard).collect();
    let end = sealed.end.0 - header.base.0;
    let may_be_stale = placement.is_stale || sealed.is_inherited;
    Some(InPlace {
        segment: SegmentRef::new(&sealed.segment, shards.len() as u64),
        shards,
        rest: (may_be_stale && end < header.size).then_some((end, header.size - end)),
    })
}

/// Renames complete extents to their final names, syncs the names and opens them. `segments` has the
/// one to which they refer.
pub(super) fn publish(
    disk: &dyn Disk,
    extents: &[Identity],
    mut segments: RetainedSegments,
) -> Result<Vec<Arc<Extent>>, FilingError> {
    for identity in extents {
        disk.rename(&identity.path_unfinished(), &identity.path())?;
    }
    sync_names(disk, extent::DIRECTORY)?;
    let open = |identity: &Identity| {
        let extent = Extent::open(disk, *identity, &mut segments)?;
        // What it has was checked when it was read, just now, or written after that.
        extent.note_checked();
        Ok(Arc::new(extent))
    };
    extents.iter().map(open).collect()
}

/// Removes extents that no manifest names, under both names.
pub(super) fn abandon(disk: &dyn Disk, extents: &[Identity]) {
    for identity in extents {
        let _ = disk.remove(&identity.path_unfinished());
        let _ = disk.remove(&identity.path());
    }
}

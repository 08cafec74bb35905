//! Filing of a segment, piece by piece, and helpers shared with merging.

use std::sync::Arc;

use super::collect::SortedSegment;
use super::memory::SegmentMemory;
use super::pieces::{SegmentPieces, ShardPieces};
use super::summary::{SegmentSummary, is_void};
use super::{Erasures, FilingError, Line, SealedSegment};
use crate::disk::{Disk, sync_names, write_zeros};
use crate::extent::{self, Extent, Identity, RetainedSegments, SegmentRef, Writer};
use crate::manifest::Manifest;
use crate::segment::ShardEnd;
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
    contents: Contents,
    /// Shards that are not written yet.
    left: Vec<ShardId>,
    writer: Option<Writer>,
    written: Vec<Identity>,
}

/// The records of a segment.
#[derive(Debug)]
enum Contents {
    /// They are copied.
    Copied(SortedSegment),
    /// They stay where they are.
    InPlace(InPlace),
}

/// A segment that stays where it is.
#[derive(Debug)]
struct InPlace {
    segment: SegmentRef,
    shards: Vec<ShardId>,
    pieces: SegmentPieces,
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
    /// Reads the segment with `memory`, unless its summary is enough. Everything before `begin` must be
    /// filed.
    pub(super) fn begin(
        sealed: SealedSegment,
        begin: Position,
        generation: u64,
        memory: &mut SegmentMemory,
        line: &dyn Line,
        placement: Placement<'_>,
        now_ms: u64,
    ) -> Result<FilingJob, FilingError> {
        let contents = match summarized(&sealed, line, placement) {
            Some(in_place) => Contents::InPlace(in_place),
            None => read(&sealed, memory, line, placement, now_ms)?,
        };
        let left = contents.written_shards();
        Ok(FilingJob {
            sealed,
            generation,
            begin,
            contents,
            left,
            writer: None,
            written: Vec::new(),
        })
    }

    /// Returns true if extents will refer to the segment.
    pub(super) fn is_in_place(&self) -> bool {
        matches!(self.contents, Contents::InPlace(_))
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
                match &self.contents {
                    Contents::InPlace(in_place) if in_place.shards.contains(&shard) => {
                        Writer::create_in_place(disk, identity, in_place.segment)?
                    }
                    _ => Writer::create(disk, identity)?,
                }
            }
        };
        let is_written = match &mut self.contents {
            Contents::Copied(sorted) => sorted.write(shard, line, &mut writer, budget)?,
            Contents::InPlace(in_place) => {
                let pieces = &mut in_place.pieces;
                pieces.write(shard, line, &mut writer, budget)?
            }
        };
        if is_written {
            writer.finish()?;
            self.left.pop();
        } else {
            self.writer = Some(writer);
        }
        Ok(self.left.is_empty())
    }

    /// Zeroes some of the unused end of a file that stays. Returns false if there is nothing to do.
    fn clear_rest(&mut self) -> Result<bool, FilingError> {
        let Contents::InPlace(in_place) = &mut self.contents else {
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

    /// Returns the segment. Gives the memory that it was read into and sorted in, if it was, back to
    /// `memory`.
    pub(super) fn into_segment(self, memory: &mut SegmentMemory, now_ms: u64) -> SealedSegment {
        if let Contents::Copied(sorted) = self.contents {
            memory.give_back(sorted.into_memory(), now_ms);
        }
        self.sealed
    }

    /// Returns the extents that were written.
    pub(super) fn extents(&self) -> &[Identity] {
        &self.written
    }

    /// Updates the manifest for the filed segment.
    pub(super) fn update_manifest(&self, manifest: &mut Manifest) {
        manifest.filed = self.end();
        manifest.sequence = self.sealed.segment.header.sequence;
        for (shard, end) in self.contents.ends() {
            let Some(known) = manifest.shards.get_mut(usize::from(shard.0)) else {
                continue;
            };
            if end.index > known.index {
                (known.index, known.term) = (end.index, end.term);
            }
        }
        if matches!(&self.contents, Contents::Copied(sorted) if sorted.has_lost) {
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
        let ends = self.contents.ends();
        let found = ends.into_iter().find(|(other, _)| *other == shard);
        let ShardEnd { index, term } = found.map_or_else(ShardEnd::default, |(_, end)| end);
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

impl Contents {
    /// Returns the last block of each shard with blocks in the segment.
    fn ends(&self) -> Vec<(ShardId, ShardEnd)> {
        match self {
            Contents::Copied(sorted) => {
                let shards = sorted.shards();
                shards.map(|(shard, share)| (shard, share.end())).collect()
            }
            Contents::InPlace(in_place) => {
                let shards = in_place.pieces.shards();
                shards
                    .map(|(shard, of_shard)| (shard, of_shard.end()))
                    .collect()
            }
        }
    }

    /// Returns the shards for which there is an extent to write, descending.
    fn written_shards(&self) -> Vec<ShardId> {
        let mut shards: Vec<ShardId> = match self {
            Contents::Copied(sorted) => {
                let shards = sorted.shards().filter(|(_, share)| !share.is_empty());
                shards.map(|(shard, _)| shard).collect()
            }
            Contents::InPlace(in_place) => {
                let shards = in_place.pieces.shards();
                let shards = shards.filter(|(_, of_shard)| !of_shard.is_empty());
                shards.map(|(shard, _)| shard).collect()
            }
        };
        shards.reverse();
        shards
    }
}

/// Returns the part of a segment that stays where it is, by the summary of those that wrote it; `None`
/// if it has to be read.
fn summarized(
    sealed: &SealedSegment,
    line: &dyn Line,
    placement: Placement<'_>,
) -> Option<InPlace> {
    let summary = sealed.summary.as_deref()?;
    let is_whole = !is_void(summary, sealed.segment.header.first(), &sealed.cuts);
    is_whole.then(|| place(sealed, summary, line, placement))?
}

/// Reads a segment.
fn read(
    sealed: &SealedSegment,
    memory: &mut SegmentMemory,
    line: &dyn Line,
    placement: Placement<'_>,
    now_ms: u64,
) -> Result<Contents, FilingError> {
    let sorted = SortedSegment::read(sealed, memory.take())?;
    let piece_size_min = placement.piece_size_min;
    let summary = piece_size_min.and_then(|size_min| sorted.summarize(size_min));
    let in_place = summary.and_then(|summary| place(sealed, &summary, line, placement));
    Ok(match in_place {
        Some(in_place) => {
            memory.give_back(sorted.into_memory(), now_ms);
            Contents::InPlace(in_place)
        }
        None => Contents::Copied(sorted),
    })
}

/// Decides whether all records of a segment stay in it: if they lie in long pieces and are at least half
/// of the file. A part of them could not stay, because the bytes of a copied record that is erased
/// later would be in the segment too, and no extent would say so.
fn place(
    sealed: &SealedSegment,
    summary: &SegmentSummary,
    line: &dyn Line,
    placement: Placement<'_>,
) -> Option<InPlace> {
    let piece_size_min = placement.piece_size_min?;
    let header = &sealed.segment.header;
    let pieces = SegmentPieces::new(summary);
    let bytes: u64 = pieces.shards().map(|(_, of_shard)| of_shard.bytes()).sum();
    let entries: u64 = pieces
        .shards()
        .map(|(_, of_shard)| of_shard.entries())
        .sum();
    if bytes < header.size / 2 || entries > bytes / piece_size_min.max(1) {
        return None;
    }
    let has_erased =
        |(shard, of_shard): (ShardId, &ShardPieces)| of_shard.has_erased(shard, placement.erasures);
    if pieces.shards().any(has_erased) {
        return None;
    }
    let live = |(shard, of_shard): (ShardId, &ShardPieces)| of_shard.live_bytes(shard, line);
    if pieces.shards().map(live).sum::<u64>() < header.size / 2 {
        return None;
    }
    let shards = pieces
        .shards()
        .filter(|(_, of_shard)| of_shard.has_records());
    let shards: Vec<ShardId> = shards.map(|(shard, _)| shard).collect();
    let end = sealed.end.0 - header.base.0;
    let may_be_stale = placement.is_stale || sealed.is_inherited;
    Some(InPlace {
        segment: SegmentRef::new(&sealed.segment, shards.len() as u64),
        shards,
        pieces,
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
        // This process has read and checked what it has, just now, or has written it.
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

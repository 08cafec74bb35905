//! Filing of a segment, piece by piece, and helpers shared with merging.

use std::sync::Arc;

use super::collect::SortedSegment;
use super::{FilingError, Line, SealedSegment};
use crate::disk::{Disk, sync_names};
use crate::extent::{self, Extent, Identity, Writer};
use crate::manifest::Manifest;
use crate::{Index, Position, ShardId};

/// A segment that is being filed.
#[derive(Debug)]
pub(super) struct FilingJob {
    pub(super) sealed: SealedSegment,
    pub(super) generation: u64,
    begin: Position,
    sorted: SortedSegment,
    /// Shards that are not written yet.
    left: Vec<ShardId>,
    writer: Option<Writer>,
    written: Vec<Identity>,
}

impl FilingJob {
    /// Reads the segment, into `memory` if that is large enough. Everything before `begin` must be
    /// filed.
    pub(super) fn begin(
        sealed: SealedSegment,
        begin: Position,
        generation: u64,
        memory: Vec<u8>,
    ) -> Result<FilingJob, FilingError> {
        let sorted = SortedSegment::read(&sealed, memory)?;
        let shards = sorted.shards().filter(|(_, share)| !share.is_empty());
        let mut left: Vec<ShardId> = shards.map(|(shard, _)| shard).collect();
        left.reverse();
        let written = Vec::new();
        Ok(FilingJob {
            sealed,
            generation,
            begin,
            sorted,
            left,
            writer: None,
            written,
        })
    }

    /// Writes about `budget` bytes. Returns true after the last.
    pub(super) fn advance(
        &mut self,
        disk: &dyn Disk,
        line: &dyn Line,
        manifest: &mut Manifest,
        budget: u64,
    ) -> Result<bool, FilingError> {
        let Some(&shard) = self.left.last() else {
            return Ok(true);
        };
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let identity = self.identity(shard, manifest);
                // Listed before it exists, so that a failure removes it.
                self.written.push(identity);
                Writer::create(disk, identity)?
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

    /// Returns the segment, and the memory that it was read into.
    pub(super) fn into_parts(self) -> (SealedSegment, Vec<u8>) {
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

/// Renames complete extents to their final names, syncs the names and opens them.
pub(super) fn publish(
    disk: &dyn Disk,
    extents: &[Identity],
) -> Result<Vec<Arc<Extent>>, FilingError> {
    for identity in extents {
        disk.rename(&identity.path_unfinished(), &identity.path())?;
    }
    sync_names(disk, extent::DIRECTORY)?;
    let open = |identity: &Identity| Ok(Arc::new(Extent::open(disk, *identity)?));
    extents.iter().map(open).collect()
}

/// Removes extents that no manifest names, under both names.
pub(super) fn abandon(disk: &dyn Disk, extents: &[Identity]) {
    for identity in extents {
        let _ = disk.remove(&identity.path_unfinished());
        let _ = disk.remove(&identity.path());
    }
}

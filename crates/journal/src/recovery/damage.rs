//! What is damaged, and what depends on it.

use std::fmt;

use crate::{Index, Position, ShardId, StreamId};

/// Entries of each list at most; a person reads them.
const ENTRIES_MAX: usize = 64;

/// A part of a segment that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    /// The file.
    pub path: String,
    /// Where in the file.
    pub offset: u64,
    /// Where in the line.
    pub position: Position,
    /// Bytes up to the next whole block, or to the end.
    pub length: u64,
}

/// Blocks of a shard that are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostBlocks {
    /// The shard.
    pub shard: ShardId,
    /// The first.
    pub first: Index,
    /// The last.
    pub last: Index,
}

/// Records of a stream that are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRecords {
    /// Its shard.
    pub shard: ShardId,
    /// The stream.
    pub stream: StreamId,
    /// The offset of the first.
    pub first: u64,
    /// Of the last.
    pub last: u64,
}

/// Everything that was found damaged. What depends on it is known from the gaps that it leaves: a
/// loss at a stream's or a shard's end leaves none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageReport {
    /// Where.
    pub ranges: Vec<DamagedRange>,
    /// Blocks that depended on it; the first 64 gaps.
    pub blocks: Vec<LostBlocks>,
    /// Records that depended on it; the first 64 gaps.
    pub records: Vec<LostRecords>,
}

impl DamageReport {
    /// Whether nothing is damaged.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn add_blocks(&mut self, shard: ShardId, first: Index, last: Index) {
        if self.blocks.len() < ENTRIES_MAX {
            self.blocks.push(LostBlocks { shard, first, last });
        }
    }

    pub(super) fn add_records(&mut self, shard: ShardId, stream: StreamId, first: u64, last: u64) {
        if self.records.len() < ENTRIES_MAX {
            self.records.push(LostRecords {
                shard,
                stream,
                first,
                last,
            });
        }
    }
}

impl fmt::Display for DamageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.ranges.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(
                f,
                "{comma}{} bytes at byte {} of {} (position {})",
                range.length, range.offset, range.path, range.position.0
            )?;
        }
        for lost in &self.blocks {
            write!(
                f,
                "; shard {} loses its blocks {} to {}",
                lost.shard.0, lost.first.0, lost.last.0
            )?;
        }
        for lost in &self.records {
            write!(
                f,
                "; stream {:016x} of shard {} loses its records {} to {}",
                lost.stream.0, lost.shard.0, lost.first, lost.last
            )?;
        }
        Ok(())
    }
}

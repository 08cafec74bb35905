//! Damage found by the recovery, and the data that is lost with it.

use std::fmt;

use crate::{Index, Position, ShardId, StreamId};

/// Entries per list at most, for a person to read.
const ENTRIES_MAX: usize = 64;

/// A damaged range of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    /// Path of the file.
    pub path: String,
    /// Byte in the file.
    pub offset: u64,
    /// Position in the line.
    pub position: Position,
    /// Bytes up to the next whole block, or to the end.
    pub length: u64,
}

/// Lost blocks of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostBlocks {
    /// The shard.
    pub shard: ShardId,
    /// Index of the first block.
    pub first: Index,
    /// Index of the last block.
    pub last: Index,
}

/// Lost records of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRecords {
    /// The stream's shard.
    pub shard: ShardId,
    /// The stream.
    pub stream: StreamId,
    /// Offset of the first record.
    pub first: u64,
    /// Offset of the last record.
    pub last: u64,
}

/// All damage found. Lost data is derived from gaps, so a loss at the end of a stream or shard is
/// not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageReport {
    /// The damaged ranges.
    pub ranges: Vec<DamagedRange>,
    /// The lost blocks; the first 64 gaps.
    pub blocks: Vec<LostBlocks>,
    /// The lost records; the first 64 gaps.
    pub records: Vec<LostRecords>,
}

impl DamageReport {
    /// Returns true if nothing is damaged.
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

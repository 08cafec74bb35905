//! What a journal is told when it is opened.

use crate::segment::{SEGMENT_HEADER_SIZE, SHARD_COUNT_MAX};
use crate::shared::Limits;

/// Bytes of a record at most, whatever the segment's size.
const RECORD_SIZE_MAX: u64 = 32 << 20;

/// Bytes of a block at most, unless it holds one record only.
const BLOCK_SIZE_MAX: u64 = 8 << 20;

const SEGMENT_SIZE_MAX: u64 = 1 << 30;

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A random number that names a journal that is formed now. One that exists keeps its own.
    pub journal_id: u64,
    /// A random number, another one at every start.
    pub entropy: u64,
    /// Shards of a journal that is formed now, 1 to 64. One that exists keeps its own.
    pub shard_count: u16,
    /// Bytes of a segment from now on: a multiple of 4096, 16 KiB to 1 GiB.
    pub segment_size: u64,
    /// Bytes that may wait for the disk.
    pub queue_bytes_max: u64,
    /// Bytes of blocks that stay in memory for readers.
    pub tail_bytes_max: usize,
    /// Within this time of an erase, its bytes have left the disk.
    pub erase_within_ms: u64,
    /// Bytes kept back on the disk, for filing and trimming when it is full.
    pub reserve_size: u64,
    /// Who says what is committed.
    pub commit: Commit,
    /// Whether to go on without data that was acked and is damaged.
    pub accept_loss: AcceptLoss,
}

/// Who says what is committed: what readers see and what can no longer be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The disk: what is durable is committed.
    WithDurable,
    /// The caller, by [`Journal::commit`](crate::Journal::commit).
    ByCaller,
}

/// See [`Options::accept_loss`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptLoss {
    /// Refuse to open, and say what is damaged.
    No,
    /// Go on without it, mark where it was, and say what was lost.
    Yes,
}

impl Default for Options {
    /// Those of a node that stands alone. The two random numbers are 0 and must be set.
    fn default() -> Options {
        Options {
            journal_id: 0,
            entropy: 0,
            shard_count: 4,
            segment_size: 64 << 20,
            queue_bytes_max: 64 << 20,
            tail_bytes_max: 32 << 20,
            erase_within_ms: 24 * 3_600_000,
            reserve_size: 16 << 20,
            commit: Commit::WithDurable,
            accept_loss: AcceptLoss::No,
        }
    }
}

impl Options {
    /// What is wrong with them, if anything.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.shard_count == 0 || self.shard_count > SHARD_COUNT_MAX {
            return Err("a journal has 1 to 64 shards");
        }
        let is_round = self.segment_size.is_multiple_of(SEGMENT_HEADER_SIZE);
        if !is_round || !(4 * SEGMENT_HEADER_SIZE..=SEGMENT_SIZE_MAX).contains(&self.segment_size) {
            return Err("a segment has 16 KiB to 1 GiB, a multiple of 4 KiB");
        }
        Ok(())
    }

    /// A block with the largest record fits in a segment beside its header.
    pub(crate) fn limits(&self) -> Limits {
        let half = self.segment_size / 2;
        Limits {
            record: RECORD_SIZE_MAX.min(half - 1) as usize,
            block: BLOCK_SIZE_MAX.min(half) as usize,
            queue: self.queue_bytes_max,
            tail: self.tail_bytes_max,
        }
    }
}

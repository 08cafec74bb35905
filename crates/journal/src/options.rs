//! Options for opening a journal.

use crate::block::BLOCK_HEADER_SIZE;
use crate::segment::{SEGMENT_HEADER_SIZE, SHARD_COUNT_MAX};

/// Bytes per record at most, for any segment size.
const RECORD_SIZE_MAX: u64 = 32 << 20;

/// Bytes per block at most, unless it holds a single record.
const BLOCK_SIZE_MAX: u64 = 8 << 20;

const SEGMENT_SIZE_MAX: u64 = 1 << 30;

/// Options for opening a journal.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Random id for a new journal. An existing journal has its own.
    pub journal_id: u64,
    /// A random number, different at each start.
    pub entropy: u64,
    /// Number of shards of a new journal, 1 to 64. An existing journal has its own.
    pub shard_count: u16,
    /// Bytes per new segment: a multiple of 4096, 16 KiB to 1 GiB.
    pub segment_size: u64,
    /// Bytes that may wait for the disk.
    pub queue_bytes_max: u64,
    /// Bytes of a shard's blocks that may wait to be committed. Applies with [`Commit::ByCaller`]
    /// only: other blocks are committed as soon as they are on disk.
    pub uncommitted_bytes_max: u64,
    /// Bytes of blocks to hold in memory for readers.
    pub tail_bytes_max: usize,
    /// Time limit for an erase to remove its bytes from the disk, in milliseconds.
    pub erase_within_ms: u64,
    /// Bytes to reserve on the disk, for filing and trimming when it is full.
    pub reserve_size: u64,
    /// Smallest mean size of the pieces in a full segment with which their bytes stay where they are
    /// instead of being copied into extents. A piece has consecutive records of one stream in one block,
    /// at most 64 KiB of them.
    pub piece_size_min: u64,
    /// Mean bytes per sync of a segment from which on the files of the next segments are not filled
    /// with zeros in advance, but only allocated.
    pub bulk_sync_size: u64,
    /// Bytes of the line to hold for peers: up to this size, segments whose blocks were not purged
    /// with [`Journal::purge`](crate::Journal::purge) are not filed. 0 holds nothing.
    pub hold_size: u64,
    /// Decides which blocks are committed.
    pub commit: Commit,
    /// Opens the journal even if acknowledged data is damaged.
    pub accept_loss: AcceptLoss,
}

/// Decides which blocks are committed: visible to readers and no longer removable by a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Written blocks are committed. The journal leads all its shards from its opening on.
    WithDurable,
    /// The caller commits blocks with [`Journal::commit`](crate::Journal::commit), and leads a shard
    /// from [`Journal::begin_reign`](crate::Journal::begin_reign) or
    /// [`Journal::begin_proposed_reign`](crate::Journal::begin_proposed_reign) on.
    ByCaller,
}

/// See [`Options::accept_loss`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptLoss {
    /// Refuse to open, and report the damage.
    No,
    /// Open without the damaged data, mark its range, and report the loss.
    Yes,
}

/// Size limits, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) record: usize,
    pub(crate) block: usize,
    /// A block that another node decided.
    pub(crate) decided: usize,
    /// Bytes of the line to hold for peers.
    pub(crate) hold: u64,
    /// Smallest mean size of the pieces of a segment that is not copied.
    pub(crate) piece_size_min: u64,
    /// Mean bytes per sync from which on files are only allocated.
    pub(crate) bulk_sync: u64,
    pub(crate) queue: u64,
    /// Bytes of a shard's blocks that are not committed.
    pub(crate) uncommitted: u64,
    pub(crate) tail: usize,
}

impl Default for Options {
    /// Options of a standalone node. The two random numbers are 0 and must be set.
    fn default() -> Options {
        Options {
            journal_id: 0,
            entropy: 0,
            shard_count: 4,
            segment_size: 64 << 20,
            queue_bytes_max: 64 << 20,
            uncommitted_bytes_max: 64 << 20,
            tail_bytes_max: 32 << 20,
            erase_within_ms: 24 * 3_600_000,
            reserve_size: 16 << 20,
            piece_size_min: 8 << 10,
            bulk_sync_size: 256 << 10,
            hold_size: 0,
            commit: Commit::WithDurable,
            accept_loss: AcceptLoss::No,
        }
    }
}

impl Options {
    /// Checks the options. The error describes the first invalid one.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.shard_count == 0 || self.shard_count > SHARD_COUNT_MAX {
            return Err("shard_count must be 1 to 64");
        }
        let is_round = self.segment_size.is_multiple_of(SEGMENT_HEADER_SIZE);
        if !is_round || !(4 * SEGMENT_HEADER_SIZE..=SEGMENT_SIZE_MAX).contains(&self.segment_size) {
            return Err("segment_size must be a multiple of 4 KiB, 16 KiB to 1 GiB");
        }
        Ok(())
    }

    /// Returns the size limits. A block with the largest record fits into a segment next to its
    /// header.
    pub(crate) fn limits(&self) -> Limits {
        let half = self.segment_size / 2;
        Limits {
            record: RECORD_SIZE_MAX.min(half - 1) as usize,
            block: BLOCK_SIZE_MAX.min(half) as usize,
            decided: (self.segment_size - SEGMENT_HEADER_SIZE) as usize - 2 * BLOCK_HEADER_SIZE,
            hold: self.hold_size,
            piece_size_min: self.piece_size_min,
            bulk_sync: self.bulk_sync_size,
            queue: self.queue_bytes_max,
            uncommitted: match self.commit {
                Commit::WithDurable => u64::MAX,
                Commit::ByCaller => self.uncommitted_bytes_max,
            },
            tail: self.tail_bytes_max,
        }
    }
}

//! The result of an inspection: views of the line, of its segments, of extents and of streams.

use std::collections::BTreeMap;

use journal::{Index, LastVote, Position, ShardId, StreamId};

use super::{Damage, MissingRecords};

/// Result of an inspection.
#[derive(Debug, Default)]
pub struct Inspection {
    /// Format version of the journal; 0 if there is no readable manifest.
    pub format_version: u32,
    /// Id of the journal; 0 if no readable file states it.
    pub journal_id: u64,
    /// Number of shards.
    pub shard_count: u16,
    /// Everything before this position is in extents.
    pub filed: Position,
    /// The extents that the manifest names.
    pub extents: Vec<ExtentView>,
    /// The write-ahead log.
    pub line: LineView,
    /// Spare files, which will become segments.
    pub spares: Files,
    /// Unreferenced files, left by a crash; the next start removes them.
    pub strays: Files,
    /// Size of the reserve for a full disk.
    pub reserve_bytes: u64,
    /// All known streams.
    pub streams: BTreeMap<(ShardId, StreamId), StreamView>,
    /// All damage. If it is empty, the directory is whole.
    pub damage: Vec<Damage>,
    /// Missing records. An error, unless their loss was accepted.
    pub missing: Vec<MissingRecords>,
    /// An earlier loss was accepted. If nothing is damaged, it explains the missing records.
    pub is_loss_accepted: bool,
    /// Records of the requested stream, by shard and offset: tag and bytes.
    pub records: BTreeMap<(ShardId, u64), (u8, Vec<u8>)>,
}

/// Number and size of a set of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Number of files.
    pub count: u64,
    /// Total bytes.
    pub bytes: u64,
}

/// An extent that the manifest names; without a manifest, any extent in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentView {
    /// Path of the file.
    pub path: String,
    /// Shard of the records.
    pub shard: ShardId,
    /// Size of the file in bytes; 0 if it cannot be used.
    pub size: u64,
    /// Sequence of the segment with its records, if they were not copied.
    pub segment: Option<u64>,
    /// The extent's range of the line.
    pub positions: (Position, Position),
    /// Streams in the stream table.
    pub streams: u64,
    /// Records read.
    pub records: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Bytes of trimmed records among them.
    pub dead_bytes: u64,
}

/// The write-ahead log, as found by an inspection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineView {
    /// Its segments, oldest first.
    pub segments: Vec<SegmentView>,
    /// Number of whole blocks.
    pub blocks: u64,
    /// Number of records in them, including trims and erases.
    pub records: u64,
    /// Position of its end.
    pub end: Position,
    /// Position before which a later block declares everything durable.
    pub durable: Position,
    /// Bytes after the end that were torn when the node stopped, and never acknowledged.
    pub torn_bytes: u64,
    /// Index of each shard's last block.
    pub shard_ends: Vec<Index>,
    /// Each shard's last vote.
    pub votes: Vec<LastVote>,
    /// Bytes whose loss was accepted.
    pub lost_bytes: u64,
}

/// A segment, as found by an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentView {
    /// Path of the file.
    pub path: String,
    /// Sequence of the segment.
    pub sequence: u64,
    /// Size of the file in bytes.
    pub size: u64,
    /// State of the segment.
    pub state: SegmentState,
    /// Positions of its start and of the end of its blocks.
    pub positions: (Position, Position),
    /// Number of whole blocks.
    pub blocks: u64,
    /// Number of records in them.
    pub records: u64,
}

/// State of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentState {
    /// Its records are in extents; the file will be recycled.
    Filed,
    /// Extents refer to its records, which were not copied.
    Retained,
    /// Complete, and waiting to be filed.
    Sealed,
    /// The last segment, to which records are appended.
    Active,
    /// Its header is invalid.
    Unreadable,
}

/// State of a stream, as found by an inspection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamView {
    /// Offset of the first record.
    pub start: u64,
    /// Offset after the last one that was assigned, as far as known.
    pub next: u64,
    /// Records below this offset were erased.
    pub erased: u64,
    /// Number of records from the start on.
    pub records: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Bytes of trimmed records that are still on disk.
    pub dead_bytes: u64,
    /// Bytes of erased records among them.
    pub unerased_bytes: u64,
    /// Next expected offset, while records are visited in order.
    pub(super) expected: u64,
}

impl Inspection {
    /// Returns true if nothing is damaged or missing, except for accepted losses.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && (self.missing.is_empty() || self.is_loss_accepted)
    }
}

impl Files {
    pub(super) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

//! The summary of a segment: its pieces, trims and erases, gathered while its blocks are written.
//!
//! With it, the filing makes extents in place without reading the segment. There is none for a segment
//! of an earlier run, nor for one with cuts or with many short pieces, which is copied anyway: such
//! segments are read. So a summary takes no more than some 50 bytes for each smallest piece size.
//!
//! The checksums are of the bytes in memory that the line hands to the disk. What is read later is
//! compared with them, so damage on the way to the disk, or there, does not go unnoticed.

use std::collections::BTreeMap;

use super::Cut;
use crate::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind};
use crate::checksum;
use crate::extent::{PIECE_SIZE, PieceSummary};
use crate::record::{self, RECORD_HEADER_SIZE, RecordError, RecordHeader, RecordKind};
use crate::segment::ShardEnd;
use crate::{Position, ShardId};

/// Entries that a summary may have in addition to one for each smallest piece size.
const ENTRIES_MIN: u64 = 1024;

/// A trim or an erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the stream.
    pub stream: u64,
    /// First offset that is not trimmed.
    pub start: u64,
    /// First offset that is not erased.
    pub erased: u64,
}

/// Pieces, trims and erases of one shard in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardSummary {
    /// The shard's last block in the segment.
    pub end: ShardEnd,
    /// Pieces of its records.
    pub pieces: Vec<PieceSummary>,
    /// Trims and erases.
    pub marks: Vec<Mark>,
}

/// Pieces, trims and erases of a segment, by shard. Only shards with blocks that have an index are in
/// it.
pub type SegmentSummary = BTreeMap<ShardId, ShardSummary>;

/// Returns true if a cut may void blocks of a segment with this summary, which begins at `first`.
pub(super) fn is_void(summary: &SegmentSummary, first: Position, cuts: &[Cut]) -> bool {
    cuts.iter().any(|cut| {
        let of_shard = summary.get(&cut.shard);
        cut.position > first && of_shard.is_some_and(|of_shard| cut.index <= of_shard.end.index)
    })
}

/// Gathers the summary of a segment block by block.
#[derive(Debug)]
pub(crate) struct SummaryBuilder {
    /// `None` if there will be no summary.
    shards: Option<SegmentSummary>,
    piece_size_min: u64,
    /// Bytes of the blocks' bodies.
    bytes: u64,
    entries: u64,
}

impl Mark {
    /// Returns the effect of a record, if it is a trim or an erase.
    pub(super) fn of(record: &RecordHeader) -> Option<Mark> {
        let erased = match record.kind {
            RecordKind::Data => return None,
            RecordKind::Trim => 0,
            RecordKind::Erase => record.offset,
        };
        Some(Mark {
            stream: record.stream.0,
            start: record.offset,
            erased,
        })
    }
}

impl SummaryBuilder {
    /// Begins the summary of an empty segment. Pieces that are smaller than `piece_size_min` on average
    /// are copied, so they need no summary.
    pub(crate) fn new(piece_size_min: u64) -> SummaryBuilder {
        SummaryBuilder {
            shards: Some(SegmentSummary::new()),
            piece_size_min: piece_size_min.max(1),
            bytes: 0,
            entries: 0,
        }
    }

    /// Adds the next block of the segment that begins at `base`. Returns the checksum of the body, if it
    /// was computed.
    pub(crate) fn add(&mut self, header: &BlockHeader, base: Position, body: &[u8]) -> Option<u32> {
        match header.kind {
            kind if kind.is_entry() => {}
            BlockKind::Idle | BlockKind::Vote => return None,
            // A cut voids blocks, here or in an earlier segment; lost bytes are unknown.
            _ => {
                self.shards = None;
                return None;
            }
        }
        self.bytes += body.len() as u64;
        let checksum = self.add_body(header, base, body);
        if checksum.is_none() {
            self.shards = None;
        }
        checksum
    }

    /// Adds an entry. Returns `None` if there is to be no summary.
    fn add_body(&mut self, header: &BlockHeader, base: Position, body: &[u8]) -> Option<u32> {
        let shard = self.shards.as_mut()?.entry(header.shard).or_default();
        shard.end = ShardEnd {
            index: header.index,
            term: header.term,
        };
        let entries_max = ENTRIES_MIN + self.bytes / self.piece_size_min;
        let begin = (header.position.0 - base.0) as usize + BLOCK_HEADER_SIZE;
        let (mut at, mut checksum) = (0, 0);
        while at < body.len() {
            self.entries += 1;
            if self.entries > entries_max {
                return None;
            }
            let first = record::decode_header(body, at).ok()?;
            let run = Run::from(body, at, &first).ok()?;
            let bytes = body.get(at..run.end)?;
            let of_run = crc32c::crc32c(bytes);
            checksum = checksum::join(checksum, of_run, bytes.len() as u32);
            match Mark::of(&first) {
                Some(mark) => shard.marks.push(mark),
                None => shard.pieces.push(PieceSummary {
                    stream: first.stream,
                    first: first.offset,
                    last: run.last,
                    time_ms: header.time_ms,
                    count: run.count,
                    place: (begin + at) as u32,
                    length: bytes.len() as u32,
                    checksum: of_run,
                }),
            }
            at = run.end;
        }
        Some(checksum)
    }

    /// Ends the segment. Returns its summary, if there is one.
    pub(crate) fn finish(self) -> Option<SegmentSummary> {
        self.shards
    }
}

/// Records of a body that are one piece; or a trim or an erase.
struct Run {
    /// Offset of the last record.
    last: u64,
    count: u32,
    /// End of the last record in the body.
    end: usize,
}

impl Run {
    /// Finds the end of the piece that begins with this record at byte `at` of a body.
    fn from(body: &[u8], at: usize, first: &RecordHeader) -> Result<Run, RecordError> {
        let mut run = Run {
            last: first.offset,
            count: 1,
            end: at + RECORD_HEADER_SIZE + first.length,
        };
        while first.kind == RecordKind::Data && run.end < body.len() {
            let next = record::decode_header(body, run.end)?;
            let end = run.end + RECORD_HEADER_SIZE + next.length;
            let follows = next.kind == RecordKind::Data && next.stream == first.stream;
            if !follows || end - at > PIECE_SIZE {
                break;
            }
            (run.last, run.end) = (next.offset, end);
            run.count += 1;
        }
        Ok(run)
    }
}

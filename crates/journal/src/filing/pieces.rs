//! The pieces of a segment that stays where it is, by shard and stream.

use std::collections::BTreeMap;

use super::marks::Marks;
use super::summary::{SegmentSummary, ShardSummary};
use super::{Erasures, FilingError, Line};
use crate::ShardId;
use crate::extent::{PieceSummary, Writer};
use crate::segment::ShardEnd;

/// Cost of an entry of an index or a stream table in a budget.
const ENTRY_COST: u64 = 128;

/// The pieces of a segment, sorted.
#[derive(Debug)]
pub(super) struct SegmentPieces(BTreeMap<ShardId, ShardPieces>);

/// The pieces of one shard, of which the first are written already.
#[derive(Debug)]
pub(super) struct ShardPieces {
    end: ShardEnd,
    pieces: Vec<PieceSummary>,
    at: usize,
    marks: Marks,
    /// End of the pieces of the stream that is being written.
    open: Option<usize>,
}

impl SegmentPieces {
    /// Sorts the pieces of a summary.
    pub(super) fn new(summary: &SegmentSummary) -> SegmentPieces {
        let of_shard = |(shard, summary): (&ShardId, &ShardSummary)| {
            let mut pieces = summary.pieces.clone();
            pieces.sort_unstable_by_key(|piece| (piece.stream, piece.first));
            let pieces = ShardPieces {
                end: summary.end,
                pieces,
                at: 0,
                marks: Marks::new(summary.marks.clone()),
                open: None,
            };
            (*shard, pieces)
        };
        SegmentPieces(summary.iter().map(of_shard).collect())
    }

    /// Iterates over the shards with blocks in the segment, ascending.
    pub(super) fn shards(&self) -> impl Iterator<Item = (ShardId, &ShardPieces)> {
        self.0.iter().map(|(shard, pieces)| (*shard, pieces))
    }

    /// Writes about `budget` bytes of the extent of a shard. Returns true after the last.
    pub(super) fn write(
        &mut self,
        shard: ShardId,
        line: &dyn Line,
        writer: &mut Writer,
        budget: u64,
    ) -> Result<bool, FilingError> {
        let Some(of_shard) = self.0.get_mut(&shard) else {
            return Ok(true);
        };
        for _ in 0..budget.div_ceil(ENTRY_COST) {
            if !of_shard.write_entry(shard, line, writer)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl ShardPieces {
    /// Returns the shard's last block in the segment.
    pub(super) fn end(&self) -> ShardEnd {
        self.end
    }

    /// Returns true if there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.marks.count() == 0
    }

    /// Returns true if the shard has records in the segment.
    pub(super) fn has_records(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Returns the number of pieces, trims and erases.
    pub(super) fn entries(&self) -> u64 {
        (self.pieces.len() + self.marks.count()) as u64
    }

    /// Returns the bytes of all payloads.
    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().map(PieceSummary::payload_bytes).sum()
    }

    /// Estimates the bytes of the payloads that are not trimmed: of a piece that is trimmed in part, by
    /// its offsets.
    pub(super) fn live_bytes(&self, shard: ShardId, line: &dyn Line) -> u64 {
        let streams = self.pieces.chunk_by(|one, next| one.stream == next.stream);
        let live = streams.map(|pieces| {
            let start = line.start(shard, pieces[0].stream);
            let of_piece = pieces.iter().map(|piece| piece.live_bytes(start));
            of_piece.sum::<u64>()
        });
        live.sum()
    }

    /// Returns true if some of the records are to be erased.
    pub(super) fn has_erased(&self, shard: ShardId, erasures: &Erasures) -> bool {
        let mut streams = self.pieces.chunk_by(|one, next| one.stream == next.stream);
        streams.any(|pieces| erasures.concerns(shard, pieces[0].stream, pieces[0].first))
    }

    /// Writes the next stream or piece. Returns false if there is none.
    fn write_entry(
        &mut self,
        shard: ShardId,
        line: &dyn Line,
        writer: &mut Writer,
    ) -> Result<bool, FilingError> {
        if let Some(end) = self.open
            && self.at < end
        {
            writer.piece(&self.pieces[self.at])?;
            self.at += 1;
            return Ok(true);
        }
        let left = &self.pieces[self.at..];
        let piece = left.first().map(|piece| piece.stream.0);
        let Some(stream) = piece.into_iter().chain(self.marks.stream()).min() else {
            return Ok(false);
        };
        let count = left.partition_point(|piece| piece.stream.0 <= stream);
        let last = left[..count].last().map(|piece| piece.last);
        self.open = Some(self.at + count);
        writer.stream(&self.marks.entry(shard, stream, last, line))?;
        Ok(true)
    }
}

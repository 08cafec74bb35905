//! Replays the blocks of the line into the shards, and validates them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::files::FoundSegment;
use super::gaps::Gaps;
use super::{DamagedRange, LineError, Recovery, contradiction, io_error};
use crate::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind, aligned};
use crate::filing::Cut;
use crate::manifest::Manifest;
use crate::segment::{
    self, BlockView, SEGMENT_HEADER_SIZE, Scan, Segment, SegmentHeader, ShardEnd,
};
use crate::shard::{DecidedError, Shard, State};
use crate::tail::BlockLocation;
use crate::votes::{LastVote, Vote};
use crate::{Index, Position, ShardId};

/// Returns true if the end of the whole blocks was durable, so that later data may have been
/// acknowledged.
fn was_durable(end: Position, hint: Position) -> bool {
    hint > end
}

/// A replay in progress.
pub(super) struct Replay<'a> {
    shards: &'a [Shard],
    pub(super) recovery: Recovery,
    /// Ranges to mark if the loss is accepted: segment, from, to.
    lost: Vec<(usize, Position, Position)>,
    pub(super) cuts: Vec<Cut>,
    /// Blocks of a shard, from an index on, that a later cut must void, because filing left them
    /// out. Until that cut, all blocks of the shard are void too, and continue missing ones.
    void: Vec<(ShardId, Index)>,
    gaps: Gaps,
    /// Position before which a later block declares everything durable.
    pub(super) durable: Position,
    /// Damage was found, now or by an earlier run that accepted it. Later blocks may not continue
    /// earlier ones.
    has_gaps: bool,
}

impl<'a> Replay<'a> {
    pub(super) fn new(manifest: &Manifest, shards: &'a [Shard]) -> Replay<'a> {
        Replay {
            shards,
            recovery: Recovery::default(),
            lost: Vec::new(),
            cuts: Vec::new(),
            void: Vec::new(),
            gaps: Gaps::default(),
            durable: manifest.filed,
            has_gaps: manifest.has_lost,
        }
    }

    /// Reports that the first unfiled segment and all later ones are missing.
    pub(super) fn report_missing_end(&mut self, manifest: &Manifest) {
        let path = segment::path(manifest.sequence + 1);
        self.note(path, 0, manifest.filed, 0);
    }

    /// Checks that a segment begins where the shards are. The previous segment ends at `end`.
    pub(super) fn begin(
        &mut self,
        place: usize,
        found: &mut FoundSegment,
        end: Position,
    ) -> Result<(), LineError> {
        if !found.has_header() {
            // Reconstruct the header from the earlier blocks.
            let header = Arc::make_mut(&mut found.header);
            header.previous_end = end;
            header.shards = self.shards.iter().map(end_of).collect();
            let path = segment::path(header.sequence);
            self.note(path, 0, header.base, SEGMENT_HEADER_SIZE);
            return match found.segment() {
                Some(segment) => {
                    learn_shards(&segment, &mut Arc::make_mut(&mut found.header).shards)
                        .map_err(|error| io_error(&segment.header, error))
                }
                None => Ok(()),
            };
        }
        match place {
            0 => self.begin_line(&found.header)?,
            _ => self.begin_segment(&found.header)?,
        }
        for (shard, vote) in self.shards.iter().zip(&found.header.votes) {
            shard.state.lock().votes.restore(*vote);
        }
        Ok(())
    }

    /// Replays a segment's blocks and returns their end.
    pub(super) fn segment(
        &mut self,
        place: usize,
        found: &FoundSegment,
        sealed_end: Option<Position>,
    ) -> Result<Position, LineError> {
        match found.segment() {
            Some(segment) => self.blocks(place, &segment, sealed_end),
            None => {
                let end = sealed_end.unwrap_or(found.header.limit());
                self.damaged(place, &found.header, found.header.first(), end);
                Ok(end)
            }
        }
    }

    /// Marks a range after the segment's end as lost, because the header that stated the end is
    /// damaged and blocks may be missing. Returns the new end of the segment.
    pub(super) fn mark_end(
        &mut self,
        place: usize,
        header: &SegmentHeader,
        end: Position,
    ) -> Position {
        let torn = std::mem::take(&mut self.recovery.torn_bytes);
        let mark = aligned(torn.max(BLOCK_HEADER_SIZE as u64));
        let to = Position(end.0 + mark).min(header.limit());
        if to.0 - end.0 < BLOCK_HEADER_SIZE as u64 {
            // The room after each block is filled by a hint, so nothing is missing.
            return end;
        }
        self.lost.push((place, end, to));
        to
    }

    /// Checks the first unfiled segment. Blocks that a later cut voids are not filed, so the shards
    /// may have fewer blocks than its header states.
    fn begin_line(&mut self, header: &SegmentHeader) -> Result<(), LineError> {
        for (shard, expected) in self.shards.iter().zip(&header.shards) {
            let mut state = shard.state.lock();
            let end = state.end().index;
            if end < expected.index {
                self.void.push((shard.id, Index(end.0 + 1)));
                state.skip_to(expected.index, header.base);
            }
        }
        self.begin_segment(header)
    }

    /// Checks that the blocks assumed void were voided by a cut.
    pub(super) fn check_void(&self, header: &SegmentHeader) -> Result<(), LineError> {
        if self.has_gaps || self.void.is_empty() {
            return Ok(());
        }
        let what = "blocks of a shard are missing";
        Err(contradiction(header, header.base, what))
    }

    /// Checks that the shards have the ends that the segment's header states.
    fn begin_segment(&mut self, header: &SegmentHeader) -> Result<(), LineError> {
        for (shard, expected) in self.shards.iter().zip(&header.shards) {
            let mut state = shard.state.lock();
            if state.end().index < expected.index {
                self.skip_to(header, &mut state, shard, expected.index, header.base)?;
            }
            if state.end().index > expected.index {
                let what = "a shard has more blocks than the segment states";
                return Err(contradiction(header, header.base, what));
            }
        }
        Ok(())
    }

    fn blocks(
        &mut self,
        place: usize,
        segment: &Segment,
        sealed_end: Option<Position>,
    ) -> Result<Position, LineError> {
        let limit = sealed_end.unwrap_or(segment.header.limit());
        let io_error = |error| io_error(&segment.header, error);
        let mut scan = Scan::new(segment, limit);
        loop {
            while let Some(block) = scan.next_block().map_err(io_error)? {
                self.block(segment, &block)?;
            }
            let end = scan.position();
            if sealed_end == Some(end) {
                return Ok(end);
            }
            if sealed_end.is_none() && self.is_torn(segment, end)? {
                return Ok(end);
            }
            let found = scan.seek().map_err(io_error)?;
            let resumed = found.map_or(limit, |header| header.position);
            self.damaged(place, &segment.header, end, resumed);
            if found.is_none() {
                return Ok(limit);
            }
        }
    }

    /// Returns true if nothing after `end`, in the last segment, was ever acknowledged.
    fn is_torn(&mut self, segment: &Segment, end: Position) -> Result<bool, LineError> {
        let mut ahead = Scan::from(segment, end, segment.header.limit());
        let mut torn_end = end.0;
        while let Some(header) = ahead
            .seek()
            .map_err(|error| io_error(&segment.header, error))?
        {
            if was_durable(end, header.hint) {
                return Ok(false);
            }
            torn_end = header.end().0;
        }
        let claimed =
            claimed_length(segment, end).map_err(|error| io_error(&segment.header, error))?;
        self.recovery.torn_bytes = torn_end.max(end.0 + claimed) - end.0;
        Ok(true)
    }

    fn block(&mut self, segment: &Segment, block: &BlockView<'_>) -> Result<(), LineError> {
        let header = &block.header;
        self.recovery.blocks += 1;
        self.recovery.bytes += u64::from(header.length);
        self.durable = self.durable.max(header.hint);
        match header.kind {
            BlockKind::Idle => Ok(()),
            BlockKind::Lost => {
                self.note_gap();
                Ok(())
            }
            BlockKind::Records | BlockKind::Members | BlockKind::Blank => {
                self.entry(segment, block)
            }
            BlockKind::Cut => self.cut(segment, header),
            BlockKind::Vote => self.vote(segment, block),
        }
    }

    fn vote(&mut self, segment: &Segment, block: &BlockView<'_>) -> Result<(), LineError> {
        let header = &block.header;
        let shard = self.shard(segment, header)?;
        let malformed = || contradiction(&segment.header, header.position, "a vote is malformed");
        let vote = Vote::new(header.term, block.body).ok_or_else(malformed)?;
        shard.state.lock().votes.restore(LastVote::Known(vote));
        Ok(())
    }

    /// Notes that a part of the line is missing: later blocks may not continue earlier ones, and the
    /// last vote of any shard may have been in it.
    fn note_gap(&mut self) {
        self.has_gaps = true;
        for shard in self.shards {
            shard.state.lock().votes.restore(LastVote::Lost);
        }
    }

    fn cut(&mut self, segment: &Segment, header: &BlockHeader) -> Result<(), LineError> {
        let shard = self.shard(segment, header)?;
        let mut state = shard.state.lock();
        // At a start, only filed blocks are committed.
        if header.index <= state.committed() {
            let what = "a cut voids filed blocks";
            return Err(contradiction(&segment.header, header.position, what));
        }
        let last = Index(header.index.0 - 1);
        if state.end().index < last {
            self.skip_to(&segment.header, &mut state, shard, last, header.position)?;
        }
        self.void_from(&mut state, header);
        Ok(())
    }

    /// Voids a shard's blocks from a block's index on, by this cut or by one that was lost before
    /// the block.
    fn void_from(&mut self, state: &mut State, header: &BlockHeader) {
        state.void_from(header.index);
        self.gaps.void_from(header.shard, header.index, state);
        self.void
            .retain(|(shard, first)| *shard != header.shard || *first < header.index);
        self.cuts.push(Cut {
            shard: header.shard,
            index: header.index,
            position: header.position,
        });
    }

    fn entry(&mut self, segment: &Segment, block: &BlockView<'_>) -> Result<(), LineError> {
        let header = &block.header;
        let shard = self.shard(segment, header)?;
        let mut state = shard.state.lock();
        let next = state.end().index.0 + 1;
        if header.index.0 > next {
            let last = Index(header.index.0 - 1);
            self.skip_to(&segment.header, &mut state, shard, last, header.position)?;
        }
        if header.index.0 < next {
            // Its cut may be lost. Filed blocks are never cut.
            if !self.has_gaps || header.index <= state.committed() {
                let what = "the block's index is not the shard's next";
                return Err(contradiction(&segment.header, header.position, what));
            }
            self.void_from(&mut state, header);
        }
        self.check(segment, block, &state)?;
        let location = BlockLocation {
            position: header.position,
            length: header.length,
            kind: header.kind,
            time_ms: header.time_ms,
        };
        state.replay(header.index, header.term, location, block.body);
        Ok(())
    }

    /// Checks a block by the rules for decided blocks. A gap in offsets, and a lower term, are
    /// allowed after damage, and in blocks that are void or follow void ones.
    fn check(
        &mut self,
        segment: &Segment,
        block: &BlockView<'_>,
        state: &State,
    ) -> Result<(), LineError> {
        let (header, shard) = (&block.header, block.header.shard);
        let may_leave_gap = self.has_gaps || self.void.iter().any(|(void, _)| *void == shard);
        let (gaps, lost) = (&mut self.gaps, &mut self.recovery.lost);
        let checked = state.check_records(header.kind, header.index, block.body, |gap| {
            if may_leave_gap {
                gaps.note(shard, header.index, gap.stream, gap.next);
                if !lost.is_empty() {
                    lost.add_records(shard, gap.stream, gap.next, gap.offset - 1);
                }
            }
            may_leave_gap
        });
        let checked = checked.and_then(|count| match may_leave_gap {
            true => Ok(count),
            false => state.check_term(header.index, header.term).map(|()| count),
        });
        let what = match checked {
            Ok(count) if count == header.count => return Ok(()),
            Ok(_) => "the number of records differs from the block's header",
            Err(DecidedError::Record(_)) => "a record is malformed",
            Err(DecidedError::Offset { .. }) => "a record's offset is not its stream's next",
            Err(DecidedError::Term { .. }) => "the block's term is lower than the one before it",
            Err(_) => "the body does not belong to the block's kind",
        };
        Err(contradiction(&segment.header, header.position, what))
    }

    /// Skips missing blocks of the shard up to `last`.
    fn skip_to(
        &mut self,
        header: &SegmentHeader,
        state: &mut State,
        shard: &Shard,
        last: Index,
        at: Position,
    ) -> Result<(), LineError> {
        if !self.has_gaps {
            return Err(contradiction(header, at, "blocks of a shard are missing"));
        }
        let first = Index(state.end().index.0 + 1);
        if !self.recovery.lost.is_empty() {
            self.recovery.lost.add_blocks(shard.id, first, last);
        }
        state.skip_to(last, at);
        Ok(())
    }

    fn shard(&self, segment: &Segment, header: &BlockHeader) -> Result<&'a Shard, LineError> {
        let unknown = || contradiction(&segment.header, header.position, "the shard is unknown");
        self.shards
            .get(usize::from(header.shard.0))
            .ok_or_else(unknown)
    }

    /// Reports a damaged range and marks it as lost.
    fn damaged(&mut self, place: usize, header: &SegmentHeader, from: Position, to: Position) {
        let path = segment::path(header.sequence);
        self.note(path, from.0 - header.base.0, from, to.0 - from.0);
        if from < to {
            self.lost.push((place, from, to));
        }
    }

    fn note(&mut self, path: String, offset: u64, position: Position, length: u64) {
        self.recovery.lost.ranges.push(DamagedRange {
            path,
            offset,
            position,
            length,
        });
        self.note_gap();
    }

    /// Writes a block over every range whose loss was accepted, so that the line is whole again.
    pub(super) fn mark_lost(&self, segments: &VecDeque<Segment>) -> Result<(), LineError> {
        for (place, from, to) in &self.lost {
            let segment = &segments[*place];
            let header = BlockHeader {
                kind: BlockKind::Lost,
                shard: ShardId(0),
                length: (to.0 - from.0) as u32,
                position: *from,
                epoch: segment.header.epoch,
                hint: segment.header.first(),
                count: 0,
                term: 0,
                index: Index(0),
                time_ms: 0,
            };
            let mut bytes = [0; BLOCK_HEADER_SIZE];
            header.seal(&mut bytes, segment.header.seed());
            let offset = from.0 - segment.header.base.0;
            segment::write_at_once(&*segment.file, &bytes, offset)
                .and_then(|()| segment.file.sync_data())
                .map_err(|error| io_error(&segment.header, error))?;
        }
        Ok(())
    }
}

/// Raises the shards' ends at a segment's start to what its first blocks imply. There may have been
/// void blocks that filing left out.
fn learn_shards(segment: &Segment, shards: &mut [ShardEnd]) -> io::Result<()> {
    let mut left: Vec<Option<&mut ShardEnd>> = shards.iter_mut().map(Some).collect();
    let mut scan = Scan::new(segment, segment.header.limit());
    while let Some(block) = scan.next_block()? {
        let header = &block.header;
        let is_told = header.kind.is_entry() || header.kind == BlockKind::Cut;
        let of_shard = left
            .get_mut(usize::from(header.shard.0))
            .filter(|_| is_told);
        if let Some(end) = of_shard.and_then(Option::take) {
            end.index = end.index.max(Index(header.index.0.saturating_sub(1)));
        }
    }
    Ok(())
}

/// Returns the length that a torn block claims; 0 if it does not begin like a block.
fn claimed_length(segment: &Segment, position: Position) -> io::Result<u64> {
    let left = segment.header.limit().0 - position.0;
    let mut bytes = [0; BLOCK_HEADER_SIZE];
    if left < bytes.len() as u64 {
        return Ok(0);
    }
    segment
        .file
        .read_at(&mut bytes, position.0 - segment.header.base.0)?;
    let header = BlockHeader::parse(&bytes)
        .filter(|header| header.position == position && header.epoch == segment.header.epoch);
    Ok(header.map_or(0, |header| u64::from(header.length).min(left)))
}

fn end_of(shard: &Shard) -> ShardEnd {
    shard.state.lock().end()
}

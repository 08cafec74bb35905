//! Inspection of the line: checks every block of the unfiled segments.

use std::io;

use journal::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind};
use journal::filing::Cut;
use journal::manifest::Manifest;
use journal::record::{self, RecordKind};
use journal::segment::{self, BlockView, Scan, Segment, SegmentHeader};
use journal::{Index, LastVote, Position, Vote};

use super::claims::claims;
use super::segments::{OpenedSegment, Successor};
use super::table::Table;
use super::{Damage, Inspection, LineView};

/// Bytes of a damaged range that are searched for claims.
const CLAIMS_SIZE_MAX: u64 = 1 << 20;

/// Segments to read a second time, and the cuts in them.
#[derive(Debug, Default)]
pub(super) struct Plan {
    segments: Vec<(Segment, Position)>,
    cuts: Vec<Cut>,
}

/// Reads every block, reports invalid ones, and collects the starts and ends of streams.
pub(super) fn survey(
    opened: &[OpenedSegment],
    manifest: Option<&Manifest>,
    table: &mut Table,
    found: &mut Inspection,
    read: &mut dyn FnMut(u64),
) -> io::Result<Plan> {
    let ends = match manifest {
        Some(manifest) => manifest.shards.iter().map(|shard| shard.index).collect(),
        None => opened.first().map_or(Vec::new(), |first| {
            first
                .segment
                .header
                .shards
                .iter()
                .map(|end| end.index)
                .collect()
        }),
    };
    let survey = |cuts: Vec<Cut>, read: &mut dyn FnMut(u64)| {
        let mut survey = Survey::new(&found.line, ends.clone(), cuts);
        for one in opened {
            survey.segment(one)?;
            read(one.segment.header.size);
        }
        io::Result::Ok(survey)
    };
    let mut survey_one = survey(Vec::new(), read)?;
    if !survey_one.seen_cuts.is_empty() {
        // A cut voids blocks before it, so read again with the cuts known.
        survey_one = survey(survey_one.seen_cuts, &mut |_| {})?;
    }
    let Survey {
        view,
        damage,
        bounds,
        segments,
        seen_cuts,
        ..
    } = survey_one;
    found.line = view;
    found.damage.extend(damage);
    table.absorb(bounds);
    Ok(Plan {
        segments,
        cuts: seen_cuts,
    })
}

/// Counts every record that is not void.
pub(super) fn replay(plan: &Plan, table: &mut Table, read: &mut dyn FnMut(u64)) -> io::Result<()> {
    for (segment, end) in &plan.segments {
        let mut scan = Scan::new(segment, *end);
        loop {
            while let Some(block) = scan.next_block()? {
                if !block.header.kind.is_entry() || is_void(&plan.cuts, &block.header) {
                    continue;
                }
                for (_, record) in record::records(block.body).map_while(Result::ok) {
                    if record.kind == RecordKind::Data {
                        let shard = block.header.shard;
                        table.count(
                            shard,
                            record.stream,
                            record.offset,
                            record.tag,
                            record.bytes,
                        );
                    }
                }
            }
            if scan.seek()?.is_none() {
                break;
            }
        }
        read(segment.header.size);
    }
    Ok(())
}

fn is_void(cuts: &[Cut], header: &BlockHeader) -> bool {
    cuts.iter().any(|cut| {
        cut.shard == header.shard && cut.position > header.position && cut.index <= header.index
    })
}

/// A pass over the line.
struct Survey {
    view: LineView,
    damage: Vec<Damage>,
    /// Starts and ends of streams, according to the records.
    bounds: Table,
    segments: Vec<(Segment, Position)>,
    /// Cuts known from an earlier pass, so that the blocks that they void are skipped.
    cuts: Vec<Cut>,
    seen_cuts: Vec<Cut>,
    limit: Option<Position>,
}

impl Survey {
    fn new(view: &LineView, shard_ends: Vec<Index>, cuts: Vec<Cut>) -> Self {
        Self {
            view: LineView {
                shard_ends,
                ..view.clone()
            },
            damage: Vec::new(),
            bounds: Table::new(None),
            segments: Vec::new(),
            cuts,
            seen_cuts: Vec::new(),
            limit: None,
        }
    }

    fn segment(&mut self, opened: &OpenedSegment) -> io::Result<()> {
        let segment = &opened.segment;
        self.begin(segment);
        let limit = match opened.successor {
            Successor::States(end) => end,
            Successor::None | Successor::Unreadable => segment.header.limit(),
        };
        let mut scan = Scan::new(segment, limit);
        let end = loop {
            while let Some(block) = scan.next_block()? {
                self.block(segment, opened.view, &block);
            }
            let end = scan.position();
            let is_end = match opened.successor {
                Successor::States(expected) => end == expected,
                Successor::None => self.is_torn(segment, end)?,
                Successor::Unreadable => false,
            };
            if is_end {
                break end;
            }
            let resumed = scan.seek()?.map(|header| header.position);
            if resumed.is_none() && opened.successor == Successor::Unreadable {
                break end;
            }
            self.damaged(segment, end, resumed.unwrap_or(limit))?;
            if resumed.is_none() {
                break limit;
            }
        };
        self.view.segments[opened.view].positions.1 = end;
        self.view.end = end;
        self.segments.push((segment.clone(), end));
        Ok(())
    }

    /// Checks that a segment continues the one before it.
    fn begin(&mut self, segment: &Segment) {
        let header = &segment.header;
        let continues = self.limit.is_none_or(|limit| limit == header.base);
        if !continues && self.damage.is_empty() {
            self.contradiction(
                segment,
                header.base,
                "it does not continue the previous segment",
            );
        }
        self.limit = Some(header.limit());
        self.view.durable = self.view.durable.max(header.first());
        self.view.votes.clone_from(&header.votes);
        for (number, expected) in header.shards.iter().enumerate() {
            let Some(end) = self.view.shard_ends.get(number).copied() else {
                break;
            };
            let is_excused = self.view.lost_bytes > 0 || self.is_void_behind(number, end, header);
            if end != expected.index && !is_excused && self.damage.is_empty() {
                let what = format!(
                    "shard {number} ends at block {}, but the segment begins after block {}",
                    end.0, expected.index.0
                );
                self.contradiction(segment, header.base, &what);
            }
            self.view.shard_ends[number] = expected.index;
        }
    }

    /// Returns true if a cut voids the shard's blocks after `end` when the segment began; filing
    /// left those out.
    fn is_void_behind(&self, shard: usize, end: Index, header: &SegmentHeader) -> bool {
        self.cuts.iter().any(|cut| {
            usize::from(cut.shard.0) == shard
                && cut.index.0 <= end.0 + 1
                && cut.position >= header.base
        })
    }

    fn block(&mut self, segment: &Segment, view: usize, block: &BlockView<'_>) {
        let header = &block.header;
        self.view.blocks += 1;
        self.view.segments[view].blocks += 1;
        self.view.durable = self.view.durable.max(header.hint);
        match header.kind {
            BlockKind::Idle => {}
            BlockKind::Lost => self.view.lost_bytes += u64::from(header.length),
            BlockKind::Records | BlockKind::Members | BlockKind::Blank => {
                self.records(segment, view, block);
            }
            BlockKind::Vote => self.vote(segment, block),
            BlockKind::Cut => {
                self.seen_cuts.push(Cut {
                    shard: header.shard,
                    index: header.index,
                    position: header.position,
                });
                if let Some(end) = self.view.shard_ends.get_mut(usize::from(header.shard.0)) {
                    *end = Index(header.index.0.saturating_sub(1));
                }
            }
        }
    }

    fn vote(&mut self, segment: &Segment, block: &BlockView<'_>) {
        let header = &block.header;
        let vote = Vote::new(header.term, block.body).map(LastVote::Known);
        match self.view.votes.get_mut(usize::from(header.shard.0)) {
            None => self.contradiction(segment, header.position, "its shard is unknown"),
            Some(last) => *last = vote.unwrap_or(LastVote::Lost),
        }
        if vote.is_none() {
            self.contradiction(segment, header.position, "the vote is malformed");
        }
    }

    fn records(&mut self, segment: &Segment, view: usize, block: &BlockView<'_>) {
        let header = &block.header;
        match self.view.shard_ends.get_mut(usize::from(header.shard.0)) {
            None => self.contradiction(segment, header.position, "its shard is unknown"),
            Some(end) => {
                let expected = Index(end.0 + 1);
                *end = header.index;
                // After damage, and after an accepted loss, blocks are missing.
                let is_excused = header.index > expected
                    && (!self.damage.is_empty() || self.view.lost_bytes > 0);
                if header.index != expected && !is_excused {
                    let what = format!(
                        "block {} of shard {} is where block {} should be",
                        header.index.0, header.shard.0, expected.0
                    );
                    self.contradiction(segment, header.position, &what);
                }
            }
        }
        let is_void = is_void(&self.cuts, header);
        let mut count = 0;
        for parsed in record::records(block.body) {
            let Ok((_, record)) = parsed else { break };
            count += 1;
            if !is_void {
                self.bounds.learn_record(header.shard, &record);
            }
        }
        self.view.records += u64::from(count);
        self.view.segments[view].records += u64::from(count);
        if count != header.count {
            let what = format!(
                "the block has {count} records, but its header says {}",
                header.count
            );
            self.contradiction(segment, header.position, &what);
        }
    }

    /// Returns true if nothing after `end`, in the last segment, was ever acknowledged: no whole
    /// block there declares a later position durable.
    fn is_torn(&mut self, segment: &Segment, end: Position) -> io::Result<bool> {
        let mut ahead = Scan::from(segment, end, segment.header.limit());
        let mut torn_end = end;
        while let Some(header) = ahead.seek()? {
            if header.hint > end {
                return Ok(false);
            }
            torn_end = header.end();
        }
        // Whole blocks that declare `end` durable, or less, were not acknowledged either.
        if self.view.durable > end {
            return Ok(false);
        }
        let front = read_up_to(segment, end, BLOCK_HEADER_SIZE as u64)?;
        let claimed = BlockHeader::parse(&front)
            .filter(|header| header.position == end && header.epoch == segment.header.epoch)
            .map_or(0, |header| u64::from(header.length));
        let left = segment.header.limit().0 - end.0;
        self.view.torn_bytes = (torn_end.0 - end.0).max(claimed.min(left));
        Ok(true)
    }

    fn damaged(&mut self, segment: &Segment, from: Position, to: Position) -> io::Result<()> {
        let path = segment::path(segment.header.sequence);
        let offset = from.0 - segment.header.base.0;
        let what = "there is no whole block here, although one was durable";
        let mut damage = Damage::at(path, offset, to.0 - from.0, what).positions(from, to);
        let bytes = read_up_to(segment, from, (to.0 - from.0).min(CLAIMS_SIZE_MAX))?;
        claims(&bytes, self.view.shard_ends.len(), &mut damage);
        self.damage.push(damage);
        Ok(())
    }

    fn contradiction(&mut self, segment: &Segment, position: Position, what: &str) {
        let path = segment::path(segment.header.sequence);
        let offset = position.0 - segment.header.base.0;
        let damage = Damage::at(path, offset, BLOCK_HEADER_SIZE as u64, what);
        self.damage.push(damage.positions(position, position));
    }
}

/// Reads at most `length` bytes of a segment from a position on.
fn read_up_to(segment: &Segment, from: Position, length: u64) -> io::Result<Vec<u8>> {
    let length = length.min(segment.header.limit().0 - from.0);
    let mut bytes = vec![0; length as usize];
    segment
        .file
        .read_at(&mut bytes, from.0 - segment.header.base.0)?;
    Ok(bytes)
}

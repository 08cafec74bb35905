//! The line: every block of every segment that is not filed.

use std::io;

use super::claims::claims;
use super::segments::{Opened, SegmentView, Successor};
use super::table::Table;
use super::{Damage, Inspection};
use crate::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind};
use crate::filing::Cut;
use crate::manifest::Manifest;
use crate::record::{self, RecordKind};
use crate::segment::{self, BlockView, Scan, Segment, SegmentHeader};
use crate::{Index, Position};

/// Bytes of a damaged place that are searched for what they say of themselves.
const CLAIMS_SIZE_MAX: u64 = 1 << 20;

/// The line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineView {
    /// Its segments, oldest first.
    pub segments: Vec<SegmentView>,
    /// Whole blocks.
    pub blocks: u64,
    /// Records in them, trims and erases included.
    pub records: u64,
    /// Where it ends.
    pub end: Position,
    /// Everything before it is known to have been on disk: a later block says so.
    pub durable: Position,
    /// Bytes behind the end that were being written when the node stopped, and were not acked.
    pub torn_bytes: u64,
    /// The last block of every shard.
    pub shard_ends: Vec<Index>,
    /// Bytes whose loss was accepted.
    pub lost_bytes: u64,
}

/// What is read a second time, and how far.
#[derive(Debug, Default)]
pub(super) struct Plan {
    segments: Vec<(Segment, Position)>,
    cuts: Vec<Cut>,
}

/// Reads every block, judges what is not one, and learns where streams start and end.
pub(super) fn survey(
    opened: &[Opened],
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
        // What a cut voids stands before it.
        survey_one = survey(survey_one.seen_cuts, &mut |_| {})?;
    }
    let Survey {
        view,
        damage,
        words,
        segments,
        seen_cuts,
        ..
    } = survey_one;
    found.line = view;
    found.damage.extend(damage);
    table.absorb(words);
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
                if block.header.kind != BlockKind::Records || is_void(&plan.cuts, &block.header) {
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

/// One reading of the line.
struct Survey {
    view: LineView,
    damage: Vec<Damage>,
    /// What records say of where streams start and end.
    words: Table,
    segments: Vec<(Segment, Position)>,
    /// Known before, so that what they void is passed over.
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
            words: Table::new(None),
            segments: Vec::new(),
            cuts,
            seen_cuts: Vec::new(),
            limit: None,
        }
    }

    fn segment(&mut self, opened: &Opened) -> io::Result<()> {
        let segment = &opened.segment;
        self.begin(segment);
        let limit = match opened.successor {
            Successor::Says(end) => end,
            Successor::None | Successor::Unreadable => segment.header.limit(),
        };
        let mut scan = Scan::new(segment, limit);
        let end = loop {
            while let Some(block) = scan.next_block()? {
                self.block(segment, opened.view, &block);
            }
            let end = scan.position();
            let is_end = match opened.successor {
                Successor::Says(expected) => end == expected,
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

    /// A segment continues the one before it.
    fn begin(&mut self, segment: &Segment) {
        let header = &segment.header;
        let continues = self.limit.is_none_or(|limit| limit == header.base);
        if !continues && self.damage.is_empty() {
            self.contradiction(
                segment,
                header.base,
                "it does not continue the segment before",
            );
        }
        self.limit = Some(header.limit());
        self.view.durable = self.view.durable.max(header.first());
        for (number, expected) in header.shards.iter().enumerate() {
            let Some(end) = self.view.shard_ends.get(number).copied() else {
                break;
            };
            let is_excused = self.view.lost_bytes > 0 || self.is_void_behind(number, end, header);
            if end != expected.index && !is_excused && self.damage.is_empty() {
                let what = format!(
                    "shard {number} ends at block {}, and the segment begins behind block {}",
                    end.0, expected.index.0
                );
                self.contradiction(segment, header.base, &what);
            }
            self.view.shard_ends[number] = expected.index;
        }
    }

    /// Whether a cut makes void what a shard had behind `end` when the segment began: filing left
    /// that out.
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
            BlockKind::Records => self.records(segment, view, block),
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

    fn records(&mut self, segment: &Segment, view: usize, block: &BlockView<'_>) {
        let header = &block.header;
        match self.view.shard_ends.get_mut(usize::from(header.shard.0)) {
            None => self.contradiction(segment, header.position, "its shard is unknown"),
            Some(end) => {
                let expected = Index(end.0 + 1);
                *end = header.index;
                // Behind a damage blocks are missing, and with accepted losses too.
                let is_excused = header.index > expected
                    && (!self.damage.is_empty() || self.view.lost_bytes > 0);
                if header.index != expected && !is_excused {
                    let what = format!(
                        "block {} of shard {} stands where block {} belongs",
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
                self.words.learn_record(header.shard, &record);
            }
        }
        self.view.records += u64::from(count);
        self.view.segments[view].records += u64::from(count);
        if count != header.count {
            let what = format!("the block holds {count} records and says {}", header.count);
            self.contradiction(segment, header.position, &what);
        }
    }

    /// Whether nothing behind `end`, in the last segment, was ever acked: no whole block there
    /// says that more than this was durable.
    fn is_torn(&mut self, segment: &Segment, end: Position) -> io::Result<bool> {
        let mut ahead = Scan::from(segment, end, segment.header.limit());
        let mut torn_end = end;
        while let Some(header) = ahead.seek()? {
            if header.hint > end {
                return Ok(false);
            }
            torn_end = header.end();
        }
        // Blocks that are whole and say that they follow `end` were never acked either.
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
        let what = "these bytes are no whole block, and they were on disk as one";
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

/// At most `length` bytes of a segment from a position on.
fn read_up_to(segment: &Segment, from: Position, length: u64) -> io::Result<Vec<u8>> {
    let length = length.min(segment.header.limit().0 - from.0);
    let mut bytes = vec![0; length as usize];
    segment
        .file
        .read_at(&mut bytes, from.0 - segment.header.base.0)?;
    Ok(bytes)
}

//! Reading the line back after a stop, and judging where it ends.
//!
//! Everything is synced before it is trusted. A segment that has a successor must be whole up to
//! where the successor says that it ends. In the last one, the first place without a whole block
//! is the end, *unless* a whole block behind it says that this place was durable: then what is
//! missing was acked, and the journal is not opened unless the loss is accepted. A loss that is
//! accepted is marked in the line, so that it is accepted once.

mod damage;

use std::collections::VecDeque;
use std::io;

pub use damage::{DamageReport, DamagedRange, LostBlocks, LostRecords};

use crate::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind};
use crate::disk::{Disk, File};
use crate::filing::Cut;
use crate::manifest::Manifest;
use crate::options::AcceptLoss;
use crate::record::{self, RecordKind};
use crate::segment::{self, BlockView, Scan, Segment, SegmentError};
use crate::shard::{Shard, State};
use crate::tail::Placed;
use crate::{Index, Position, ShardId};

/// What was found when the journal was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Segments that were read back.
    pub segments: usize,
    /// Blocks in them.
    pub blocks: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Bytes at the end of the line that were being written when it stopped, and were not acked.
    pub torn_bytes: u64,
    /// What was damaged, if the loss was accepted.
    pub lost: DamageReport,
}

/// The line cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A file of it is not what it must be.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A segment between others is not there.
    #[error("{path} is missing")]
    Missing {
        /// The file.
        path: String,
    },
    /// Data that was acked is damaged.
    #[error("data that was acked is damaged: {0}")]
    Damaged(Box<DamageReport>),
    /// Parts of it contradict each other, though every one of them is whole.
    #[error("{path} contradicts what is before it at byte {offset}: {what}")]
    Contradiction {
        /// The file.
        path: String,
        /// Where in it.
        offset: u64,
        /// In which way.
        what: &'static str,
    },
    /// The disk said so.
    #[error("cannot recover {path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the disk said.
        error: io::Error,
    },
}

/// The line as it was read back.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Ascending; none is filed.
    pub(crate) segments: VecDeque<Segment>,
    /// Where the last one ends.
    pub(crate) end: Position,
    /// Nothing was ever written to the last one, so that it can be gone on with.
    pub(crate) is_last_empty: bool,
    /// Paths of segments that are filed already.
    pub(crate) filed: Vec<String>,
    pub(crate) cuts: Vec<Cut>,
    pub(crate) recovery: Recovery,
}

/// Reads the unfiled part of the line back into the shards.
pub(crate) fn recover(
    disk: &dyn Disk,
    manifest: &Manifest,
    shards: &[Shard],
    accept_loss: AcceptLoss,
) -> Result<Recovered, LineError> {
    let (filed, unfiled) = list(disk, manifest)?;
    let segments = open_all(disk, manifest, &unfiled)?;
    let mut replay = Replay {
        shards,
        recovery: Recovery::default(),
        lost: Vec::new(),
        cuts: Vec::new(),
        void: Vec::new(),
        has_gaps: false,
    };
    let (mut end, mut is_last_empty) = (manifest.filed, false);
    for (place, segment) in segments.iter().enumerate() {
        let successor = segments.get(place + 1);
        let sealed_end = successor.map(|next| next.header.previous_end);
        match place {
            0 => replay.begin_line(segment)?,
            _ => replay.begin_segment(segment)?,
        }
        end = replay.segment(segment, sealed_end)?;
        is_last_empty = end == segment.header.first() && replay.recovery.torn_bytes == 0;
    }
    replay.recovery.segments = segments.len();
    if let Some(first) = segments.first() {
        replay.check_void(first)?;
    }
    if !replay.recovery.lost.is_empty() {
        if accept_loss == AcceptLoss::No {
            let report = Box::new(replay.recovery.lost);
            return Err(LineError::Damaged(report));
        }
        replay.mark_lost()?;
    }
    Ok(Recovered {
        segments: segments.into(),
        end,
        is_last_empty,
        filed,
        cuts: replay.cuts,
        recovery: replay.recovery,
    })
}

/// The paths of filed segments, and the sequences of those that are not, which are dense.
fn list(disk: &dyn Disk, manifest: &Manifest) -> Result<(Vec<String>, Vec<u64>), LineError> {
    sync_names_before_trust(disk)?;
    let names = disk
        .list(segment::LINE_DIR)
        .map_err(|error| LineError::Io {
            path: segment::LINE_DIR.into(),
            error,
        })?;
    let mut sequences: Vec<u64> = names
        .iter()
        .filter_map(|name| segment::sequence_of(name))
        .collect();
    sequences.sort_unstable();
    let unfiled = sequences.split_off(sequences.partition_point(|one| *one <= manifest.sequence));
    let expected = manifest.sequence + 1..;
    if let Some((_, missing)) = unfiled
        .iter()
        .zip(expected)
        .find(|(one, expected)| *one != expected)
    {
        let path = segment::path(missing);
        return Err(LineError::Missing { path });
    }
    if unfiled.is_empty() && manifest.sequence > 0 {
        let path = segment::path(manifest.sequence + 1);
        return Err(LineError::Missing { path });
    }
    Ok((sequences.into_iter().map(segment::path).collect(), unfiled))
}

/// Opens the segments and checks that each continues the one before it.
fn open_all(
    disk: &dyn Disk,
    manifest: &Manifest,
    sequences: &[u64],
) -> Result<Vec<Segment>, LineError> {
    let mut segments: Vec<Segment> = Vec::new();
    for &sequence in sequences {
        let path = segment::path(sequence);
        let file = disk.open(&path).and_then(|file| {
            sync_before_trust(&*file)?;
            Ok(file)
        });
        let file = file.map_err(|error| LineError::Io { path, error })?;
        let segment = Segment::read(file, sequence, manifest.journal_id)?;
        let header = &segment.header;
        let continues = segments.last().is_none_or(|last| {
            header.base == last.header.limit()
                && (last.header.first()..=last.header.limit()).contains(&header.previous_end)
        });
        if !continues || header.shards.len() != manifest.shards.len() {
            return Err(contradiction(
                &segment,
                header.base,
                "it does not continue the segment before",
            ));
        }
        segments.push(segment);
    }
    Ok(segments)
}

/// A name may be there and not on disk: whoever gave it was stopped before it was synced.
fn sync_names_before_trust(disk: &dyn Disk) -> Result<(), LineError> {
    disk.sync_dir(segment::LINE_DIR)
        .map_err(|error| LineError::Io {
            path: segment::LINE_DIR.into(),
            error,
        })
}

/// What is in the page cache may not be on disk; it is when this has returned.
fn sync_before_trust(file: &dyn File) -> io::Result<()> {
    file.sync_data()
}

/// Whether the place where whole blocks end was durable: somebody may have been told so.
fn was_durable(end: Position, hint: Position) -> bool {
    hint > end
}

struct Replay<'a> {
    shards: &'a [Shard],
    recovery: Recovery,
    /// What is marked if the loss is accepted.
    lost: Vec<(Segment, Position, Position)>,
    cuts: Vec<Cut>,
    /// Blocks of shards, from an index on, that a cut must make void.
    void: Vec<(ShardId, Index)>,
    /// Damage has been seen, now or by an earlier run that accepted it: what follows may not
    /// continue what is before.
    has_gaps: bool,
}

impl<'a> Replay<'a> {
    /// The shards are where the filed part of the line ends. Blocks in it that a cut further on
    /// made void are not filed, so there may be fewer than the first unfiled segment knows.
    fn begin_line(&mut self, segment: &Segment) -> Result<(), LineError> {
        for (shard, expected) in self.shards.iter().zip(&segment.header.shards) {
            let mut state = shard.state.lock();
            let end = state.end().index;
            if end < expected.index {
                self.void.push((shard.id, Index(end.0 + 1)));
                state.skip_to(expected.index, segment.header.base);
            }
        }
        self.begin_segment(segment)
    }

    /// Checks that blocks which were taken for void are.
    fn check_void(&self, segment: &Segment) -> Result<(), LineError> {
        let is_cut = |(shard, index): &(ShardId, Index)| {
            let mut cuts = self.cuts.iter();
            cuts.any(|cut| cut.shard == *shard && cut.index <= *index)
        };
        if self.has_gaps || self.void.iter().all(is_cut) {
            return Ok(());
        }
        let what = "blocks of a shard are not there";
        Err(contradiction(segment, segment.header.base, what))
    }

    /// Checks that the shards are where the segment says they were when it began.
    fn begin_segment(&mut self, segment: &Segment) -> Result<(), LineError> {
        for (shard, expected) in self.shards.iter().zip(&segment.header.shards) {
            let mut state = shard.state.lock();
            if state.end().index < expected.index {
                self.skip_to(
                    segment,
                    &mut state,
                    shard,
                    expected.index,
                    segment.header.base,
                )?;
            }
            if state.end().index > expected.index {
                let what = "a shard has more blocks than the segment knows";
                return Err(contradiction(segment, segment.header.base, what));
            }
        }
        Ok(())
    }

    /// Reads a segment's blocks and returns where they end.
    fn segment(
        &mut self,
        segment: &Segment,
        sealed_end: Option<Position>,
    ) -> Result<Position, LineError> {
        let limit = sealed_end.unwrap_or(segment.header.limit());
        let io_error = |error| io_error(segment, error);
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
            self.damaged(segment, end, resumed);
            if found.is_none() {
                return Ok(limit);
            }
        }
    }

    /// Whether what follows `end`, in the last segment, was never acked.
    fn is_torn(&mut self, segment: &Segment, end: Position) -> Result<bool, LineError> {
        let mut ahead = Scan::from(segment, end, segment.header.limit());
        let mut torn_end = end.0;
        while let Some(header) = ahead.seek().map_err(|error| io_error(segment, error))? {
            if was_durable(end, header.hint) {
                return Ok(false);
            }
            torn_end = header.end().0;
        }
        let claimed = claimed_length(segment, end).map_err(|error| io_error(segment, error))?;
        self.recovery.torn_bytes = torn_end.max(end.0 + claimed) - end.0;
        Ok(true)
    }

    fn block(&mut self, segment: &Segment, block: &BlockView<'_>) -> Result<(), LineError> {
        let header = &block.header;
        self.recovery.blocks += 1;
        self.recovery.bytes += u64::from(header.length);
        match header.kind {
            BlockKind::Idle => Ok(()),
            BlockKind::Lost => {
                self.has_gaps = true;
                Ok(())
            }
            BlockKind::Records => self.records(segment, block),
            BlockKind::Cut => {
                let mut state = self.shard(segment, header)?.state.lock();
                if header.index.0 > state.end().index.0 + 1 || header.index.0 == 0 {
                    let what = "a cut is behind the shard's end";
                    return Err(contradiction(segment, header.position, what));
                }
                state.void_from(header.index);
                self.cuts.push(Cut {
                    shard: header.shard,
                    index: header.index,
                    position: header.position,
                });
                Ok(())
            }
        }
    }

    fn records(&mut self, segment: &Segment, block: &BlockView<'_>) -> Result<(), LineError> {
        let header = &block.header;
        let shard = self.shard(segment, header)?;
        let mut state = shard.state.lock();
        let next = state.end().index.0 + 1;
        if header.index.0 > next {
            let last = Index(header.index.0 - 1);
            self.skip_to(segment, &mut state, shard, last, header.position)?;
        }
        if header.index.0 < next {
            let what = "the block's index is not the shard's next";
            return Err(contradiction(segment, header.position, what));
        }
        self.check_offsets(segment, block, shard, &state)?;
        let placed = Placed {
            position: header.position,
            length: header.length,
            time_ms: header.time_ms,
        };
        state.replay(header.index, header.term, placed, block.body);
        Ok(())
    }

    /// Records continue their streams; where damage was found, they may leave a gap.
    fn check_offsets(
        &mut self,
        segment: &Segment,
        block: &BlockView<'_>,
        shard: &Shard,
        state: &State,
    ) -> Result<(), LineError> {
        let position = block.header.position;
        let mut count = 0;
        let mut nexts = std::collections::BTreeMap::new();
        for parsed in record::records(block.body) {
            let (_, record) =
                parsed.map_err(|_| contradiction(segment, position, "a record is malformed"))?;
            count += 1;
            if record.kind != RecordKind::Data {
                continue;
            }
            let next = nexts
                .entry(record.stream)
                .or_insert_with(|| state.streams.get(&record.stream).map_or(0, |one| one.next));
            if record.offset < *next || (record.offset > *next && !self.has_gaps) {
                let what = "a record's offset is not its stream's next";
                return Err(contradiction(segment, position, what));
            }
            if record.offset > *next && !self.lost.is_empty() {
                let lost = &mut self.recovery.lost;
                lost.add_records(shard.id, record.stream, *next, record.offset - 1);
            }
            *next = record.offset + 1;
        }
        if count != block.header.count {
            let what = "the block has another count of records than it says";
            return Err(contradiction(segment, position, what));
        }
        Ok(())
    }

    /// Blocks of the shard up to `last` are not there.
    fn skip_to(
        &mut self,
        segment: &Segment,
        state: &mut State,
        shard: &Shard,
        last: Index,
        at: Position,
    ) -> Result<(), LineError> {
        if !self.has_gaps {
            return Err(contradiction(
                segment,
                at,
                "blocks of a shard are not there",
            ));
        }
        let first = Index(state.end().index.0 + 1);
        if !self.lost.is_empty() {
            self.recovery.lost.add_blocks(shard.id, first, last);
        }
        state.skip_to(last, at);
        Ok(())
    }

    fn shard(&self, segment: &Segment, header: &BlockHeader) -> Result<&'a Shard, LineError> {
        let unknown = || contradiction(segment, header.position, "the shard is unknown");
        self.shards
            .get(usize::from(header.shard.0))
            .ok_or_else(unknown)
    }

    fn damaged(&mut self, segment: &Segment, from: Position, to: Position) {
        self.recovery.lost.ranges.push(DamagedRange {
            path: segment::path(segment.header.sequence),
            offset: from.0 - segment.header.base.0,
            position: from,
            length: to.0 - from.0,
        });
        self.lost.push((segment.clone(), from, to));
        self.has_gaps = true;
    }

    /// Puts a block over every range whose loss was accepted, so that the line is whole again.
    fn mark_lost(&self) -> Result<(), LineError> {
        for (segment, from, to) in &self.lost {
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
            segment::write_all(&*segment.file, &bytes, offset)
                .and_then(|()| segment.file.sync_data())
                .map_err(|error| io_error(segment, error))?;
        }
        Ok(())
    }
}

/// The length that the torn block says it has; 0 if it does not even begin.
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

fn contradiction(segment: &Segment, position: Position, what: &'static str) -> LineError {
    LineError::Contradiction {
        path: segment::path(segment.header.sequence),
        offset: position.0 - segment.header.base.0,
        what,
    }
}

fn io_error(segment: &Segment, error: io::Error) -> LineError {
    LineError::Io {
        path: segment::path(segment.header.sequence),
        error,
    }
}

//! Reads a sealed segment and sorts its records by shard, stream and offset.
//!
//! Blocks that a cut voids are left out. Every block's CRC is checked, and the blocks must reach
//! exactly to the segment's end, because everything in a sealed segment was acknowledged.

use std::collections::BTreeMap;

use super::{Cut, Erasures, FilingError, Line, SealedSegment};
use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::extent::{Entry, PIECE_SIZE, PieceRef, RecordRef, Writer};
use crate::record::{self, RECORD_HEADER_SIZE, RecordKind, RecordView};
use crate::segment::{self, BlockView, SEGMENT_HEADER_SIZE, Scan};
use crate::{Index, Position, ShardId, StreamId};

/// Memory that a segment is read into and sorted in.
#[derive(Debug, Default)]
pub(super) struct SortMemory {
    bytes: Vec<u8>,
    blocks: Vec<Block>,
    /// Lists of the records of a shard each.
    items: Vec<Vec<Item>>,
}

/// Sorted records of a segment.
#[derive(Debug, Default)]
pub(super) struct SortedSegment {
    /// The segment's blocks as on disk. Payloads are copied from here only.
    bytes: Vec<u8>,
    blocks: Vec<Block>,
    /// Empty lists for shards that come.
    spare_items: Vec<Vec<Item>>,
    /// The segment has a range whose loss was accepted.
    pub(super) has_lost: bool,
    /// The segment has blocks that a cut voids.
    pub(super) has_void: bool,
    shards: BTreeMap<ShardId, Share>,
}

#[derive(Debug)]
struct Block {
    shard: ShardId,
    index: Index,
    term: u64,
    position: Position,
    time_ms: u64,
    is_void: bool,
}

/// Records of one shard in a segment.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Index of the shard's last block in the segment.
    pub(super) index: Index,
    /// Term of that block.
    pub(super) term: u64,
    items: Vec<Item>,
    marks: Vec<Mark>,
    at: usize,
    marks_at: usize,
    open: Option<OpenStream>,
}

/// A record. Small, because a segment has many.
#[derive(Debug)]
struct Item {
    stream: u64,
    offset: u64,
    place: u32,
    length: u32,
    block: u32,
    tag: u8,
}

/// A trim or an erase.
#[derive(Debug)]
struct Mark {
    stream: u64,
    start: u64,
    erased: u64,
    block: u32,
}

impl SortMemory {
    /// Returns memory with room for that many bytes of a segment, and for no record.
    #[cfg(test)]
    pub(super) fn with_bytes(size: usize) -> SortMemory {
        SortMemory {
            bytes: Vec::with_capacity(size),
            ..SortMemory::default()
        }
    }

    /// Returns the size of the memory in bytes.
    pub(super) fn size(&self) -> usize {
        let items: usize = self.items.iter().map(Vec::capacity).sum();
        self.bytes.capacity()
            + self.blocks.capacity() * size_of::<Block>()
            + items * size_of::<Item>()
    }
}

impl Item {
    /// Returns the bytes of the record in the segment.
    fn size(&self) -> usize {
        RECORD_HEADER_SIZE + self.length as usize
    }
}

/// The stream that is being written: the end of its items, and the first offset that is not
/// trimmed.
#[derive(Clone, Copy, Debug)]
struct OpenStream {
    end: usize,
    start: u64,
}

impl SortedSegment {
    /// Reads and sorts a segment, in `memory` as far as that is large enough.
    pub(super) fn read(
        sealed: &SealedSegment,
        memory: SortMemory,
    ) -> Result<SortedSegment, FilingError> {
        let mut sorted = SortedSegment {
            blocks: memory.blocks,
            spare_items: memory.items,
            ..SortedSegment::default()
        };
        let mut cuts = sealed.cuts.clone();
        let mut scan = Scan::at_once(&sealed.segment, sealed.end, memory.bytes);
        while let Some(block) = scan.next_block()? {
            match block.header.kind {
                BlockKind::Records | BlockKind::Members | BlockKind::Blank => {
                    sorted.add(&block, sealed)?;
                }
                BlockKind::Cut => cuts.push(Cut {
                    shard: block.header.shard,
                    index: block.header.index,
                    position: block.header.position,
                }),
                BlockKind::Lost => sorted.has_lost = true,
                BlockKind::Idle | BlockKind::Vote => {}
            }
        }
        if scan.position() != sealed.end {
            return Err(damaged(sealed, scan.position()));
        }
        sorted.bytes = scan.into_bytes();
        sorted.void(&cuts);
        sorted.sort();
        Ok(sorted)
    }

    /// Returns the memory for another segment.
    pub(super) fn into_memory(mut self) -> SortMemory {
        self.blocks.clear();
        let mut items = self.spare_items;
        for mut share in self.shards.into_values() {
            share.items.clear();
            items.push(share.items);
        }
        SortMemory {
            bytes: self.bytes,
            blocks: self.blocks,
            items,
        }
    }

    /// Iterates over the shards with blocks in the segment, ascending.
    pub(super) fn shards(&self) -> impl Iterator<Item = (ShardId, &Share)> {
        self.shards.iter().map(|(shard, share)| (*shard, share))
    }

    /// Writes about `budget` bytes of a shard's records. Returns true after the last.
    pub(super) fn write(
        &mut self,
        shard: ShardId,
        line: &dyn Line,
        writer: &mut Writer,
        budget: u64,
    ) -> Result<bool, FilingError> {
        let Some(share) = self.shards.get_mut(&shard) else {
            return Ok(true);
        };
        let mut spent = 0;
        while spent < budget {
            let Some(open) = share.open else {
                match share.next_stream(shard, line) {
                    Some(entry) => writer.stream(&entry)?,
                    None => return Ok(true),
                }
                spent += STREAM_COST;
                continue;
            };
            if share.at == open.end {
                share.open = None;
                continue;
            }
            if writer.is_in_place() {
                let count = piece_count(&share.items[share.at..open.end]);
                let piece = &share.items[share.at..share.at + count];
                share.at += count;
                write_piece(piece, &self.bytes, &self.blocks, writer)?;
                spent += PIECE_COST;
                continue;
            }
            let item = &share.items[share.at];
            share.at += 1;
            if item.offset >= open.start {
                let place = item.place as usize;
                writer.record(&RecordRef {
                    stream: StreamId(item.stream),
                    offset: item.offset,
                    time_ms: self.blocks[item.block as usize].time_ms,
                    tag: item.tag,
                    payload: &self.bytes[place..place + item.length as usize],
                })?;
            }
            spent += u64::from(item.length) + RECORD_COST;
        }
        Ok(false)
    }

    fn add(&mut self, block: &BlockView<'_>, sealed: &SealedSegment) -> Result<(), FilingError> {
        let header = &block.header;
        let spare_items = &mut self.spare_items;
        let share = self.shards.entry(header.shard).or_insert_with(|| Share {
            items: spare_items.pop().unwrap_or_default(),
            ..Share::default()
        });
        let number = self.blocks.len() as u32;
        let first = sealed.segment.header.first();
        let body = (header.position.0 - first.0) as usize + BLOCK_HEADER_SIZE;
        for found in record::records(block.body) {
            let (at, record) = found.map_err(|_| damaged(sealed, header.position))?;
            match record.kind {
                RecordKind::Data => {
                    let place = body + at + RECORD_HEADER_SIZE;
                    share.items.push(item(&record, place, number));
                }
                RecordKind::Trim | RecordKind::Erase => share.marks.push(mark(&record, number)),
            }
        }
        self.blocks.push(Block {
            shard: header.shard,
            index: header.index,
            term: header.term,
            position: header.position,
            time_ms: header.time_ms,
            is_void: false,
        });
        Ok(())
    }

    fn void(&mut self, cuts: &[Cut]) {
        for block in &mut self.blocks {
            block.is_void = cuts.iter().any(|cut| {
                cut.shard == block.shard
                    && cut.index <= block.index
                    && cut.position > block.position
            });
            self.has_void |= block.is_void;
        }
        for block in self.blocks.iter().filter(|block| !block.is_void) {
            if let Some(share) = self.shards.get_mut(&block.shard) {
                (share.index, share.term) = (block.index, block.term);
            }
        }
        let blocks = &self.blocks;
        for share in self.shards.values_mut() {
            share
                .items
                .retain(|item| !blocks[item.block as usize].is_void);
            share
                .marks
                .retain(|mark| !blocks[mark.block as usize].is_void);
        }
    }

    fn sort(&mut self) {
        for share in self.shards.values_mut() {
            share
                .items
                .sort_unstable_by_key(|item| (item.stream, item.offset));
            share.marks.sort_unstable_by_key(|mark| mark.stream);
        }
    }
}

/// Cost of a record and a stream in a budget, in addition to the bytes.
pub(super) const RECORD_COST: u64 = 64;
pub(super) const STREAM_COST: u64 = 128;

/// Cost of a piece in a budget, which takes a checksum of its bytes.
const PIECE_COST: u64 = PIECE_SIZE as u64 / 16;

/// Returns how many of the first items are one piece: records of one stream that follow each other in
/// a block. There must be one.
fn piece_count(items: &[Item]) -> usize {
    let mut size = items[0].size();
    let mut count = 1;
    for pair in items.windows(2) {
        let (last, next) = (&pair[0], &pair[1]);
        let follows = next.stream == last.stream
            && next.block == last.block
            && next.place as usize
                == last.place as usize + last.length as usize + RECORD_HEADER_SIZE;
        size += next.size();
        if !follows || size > PIECE_SIZE {
            break;
        }
        count += 1;
    }
    count
}

fn payload_bytes(items: &[Item]) -> u64 {
    items.iter().map(|item| u64::from(item.length)).sum()
}

/// Adds a piece to an extent in place. `bytes` are those of the segment's blocks.
fn write_piece(
    items: &[Item],
    bytes: &[u8],
    blocks: &[Block],
    writer: &mut Writer,
) -> Result<(), FilingError> {
    let (Some(first), Some(last)) = (items.first(), items.last()) else {
        return Ok(());
    };
    let begin = first.place as usize - RECORD_HEADER_SIZE;
    let end = last.place as usize + last.length as usize;
    writer.piece(&PieceRef {
        stream: StreamId(first.stream),
        first: first.offset,
        last: last.offset,
        time_ms: blocks[first.block as usize].time_ms,
        count: items.len() as u32,
        payload_bytes: payload_bytes(items),
        place: (SEGMENT_HEADER_SIZE as usize + begin) as u32,
        bytes: &bytes[begin..end],
    })?;
    Ok(())
}

impl Share {
    /// Returns true if there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.marks.is_empty()
    }

    /// Returns true if the shard has records in the segment.
    pub(super) fn has_records(&self) -> bool {
        !self.items.is_empty()
    }

    /// Counts the entries that the shard would take in the index and the stream table of an extent in
    /// place: pieces of its records, trims and erases. Stops above `count_max`.
    pub(super) fn count_entries(&self, count_max: usize) -> usize {
        let mut count = self.marks.len();
        let mut left = &self.items[..];
        while !left.is_empty() && count <= count_max {
            left = &left[piece_count(left)..];
            count += 1;
        }
        count
    }

    /// Returns the bytes of the payloads that are not trimmed.
    pub(super) fn live_bytes(&self, shard: ShardId, line: &dyn Line) -> u64 {
        let streams = self.items.chunk_by(|one, next| one.stream == next.stream);
        let live = streams.map(|items| {
            let start = line.start(shard, StreamId(items[0].stream));
            let dead = items.partition_point(|item| item.offset < start);
            payload_bytes(&items[dead..])
        });
        live.sum()
    }

    /// Returns true if some of the records are to be erased.
    pub(super) fn has_erased(&self, shard: ShardId, erasures: &Erasures) -> bool {
        let mut streams = self.items.chunk_by(|one, next| one.stream == next.stream);
        streams.any(|items| erasures.concerns(shard, StreamId(items[0].stream), items[0].offset))
    }

    /// Returns the bytes of all payloads.
    pub(super) fn bytes(&self) -> u64 {
        payload_bytes(&self.items)
    }

    /// Begins the next stream and returns its state as of this segment.
    fn next_stream(&mut self, shard: ShardId, line: &dyn Line) -> Option<Entry> {
        let item = self.items.get(self.at).map(|item| item.stream);
        let mark = self.marks.get(self.marks_at).map(|mark| mark.stream);
        let stream = item.into_iter().chain(mark).min()?;
        let mut entry = Entry::new(StreamId(stream));
        while let Some(mark) = self
            .marks
            .get(self.marks_at)
            .filter(|mark| mark.stream == stream)
        {
            entry.start = entry.start.max(mark.start);
            entry.erased = entry.erased.max(mark.erased);
            self.marks_at += 1;
        }
        let count = self.items[self.at..]
            .iter()
            .take_while(|item| item.stream == stream)
            .count();
        let end = self.at + count;
        if let Some(last) = self.items[self.at..end].last() {
            entry.next = last.offset.saturating_add(1);
        }
        entry.next = entry.next.max(entry.start);
        let start = entry.start.max(line.start(shard, entry.stream));
        // A start beyond the stream's next offset here comes from later in the line, and will be
        // filed from there. If it were used here, the unfiled records before it would not continue
        // the stream.
        entry.start = start.min(entry.next);
        self.open = Some(OpenStream { end, start });
        Some(entry)
    }
}

fn item(record: &RecordView<'_>, place: usize, block: u32) -> Item {
    Item {
        stream: record.stream.0,
        offset: record.offset,
        place: place as u32,
        length: record.bytes.len() as u32,
        block,
        tag: record.tag,
    }
}

fn mark(record: &RecordView<'_>, block: u32) -> Mark {
    let erased = if record.kind == RecordKind::Erase {
        record.offset
    } else {
        0
    };
    Mark {
        stream: record.stream.0,
        start: record.offset,
        erased,
        block,
    }
}

fn damaged(sealed: &SealedSegment, position: Position) -> FilingError {
    FilingError::Damaged {
        path: segment::path(sealed.segment.header.sequence),
        position,
    }
}

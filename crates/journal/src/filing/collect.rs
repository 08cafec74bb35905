//! Reads a sealed segment and sorts its records by shard, stream and offset.
//!
//! Blocks that a cut voids are left out. Every block's CRC is checked, and the blocks must reach
//! exactly to the segment's end, because everything in a sealed segment was acknowledged.

use std::collections::BTreeMap;

use super::marks::Marks;
use super::summary::{Mark, SegmentSummary, ShardSummary};
use super::{Cut, FilingError, Line, SealedSegment};
use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::extent::{Entry, PIECE_SIZE, PieceSummary, RecordRef, Writer};
use crate::record::{self, RECORD_HEADER_SIZE, RecordView};
use crate::segment::{self, BlockView, SEGMENT_HEADER_SIZE, Scan, ShardEnd};
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
    has_void: bool,
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
    /// The shard's last block in the segment.
    end: ShardEnd,
    items: Vec<Item>,
    /// Trims and erases, with the number of their block, until they are sorted.
    unsorted_marks: Vec<(u32, Mark)>,
    marks: Marks,
    at: usize,
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

    /// Summarizes the segment. Returns `None` if pieces would have less than `piece_size_min` bytes on
    /// average, trims and erases included, or if a part of the segment is void or lost.
    pub(super) fn summarize(&self, piece_size_min: u64) -> Option<SegmentSummary> {
        if self.has_lost || self.has_void {
            return None;
        }
        let items = self.shards.values().flat_map(|share| &share.items);
        let bytes: u64 = items.map(|item| u64::from(item.length)).sum();
        let mut left = usize::try_from(bytes / piece_size_min.max(1)).ok()?;
        for share in self.shards.values() {
            left = left.checked_sub(share.count_entries(left))?;
        }
        let summary = |(shard, share): (&ShardId, &Share)| {
            let summary = ShardSummary {
                end: share.end,
                pieces: share.pieces(&self.bytes, &self.blocks),
                marks: share.marks.all().to_vec(),
            };
            (*shard, summary)
        };
        Some(self.shards.iter().map(summary).collect())
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
            match Mark::of(&record.header()) {
                Some(mark) => share.unsorted_marks.push((number, mark)),
                None => {
                    let place = body + at + RECORD_HEADER_SIZE;
                    share.items.push(item(&record, place, number));
                }
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
                share.end = ShardEnd {
                    index: block.index,
                    term: block.term,
                };
            }
        }
        let blocks = &self.blocks;
        for share in self.shards.values_mut() {
            share
                .items
                .retain(|item| !blocks[item.block as usize].is_void);
            let marks = &mut share.unsorted_marks;
            marks.retain(|(block, _)| !blocks[*block as usize].is_void);
        }
    }

    fn sort(&mut self) {
        for share in self.shards.values_mut() {
            share
                .items
                .sort_unstable_by_key(|item| (item.stream, item.offset));
            let marks = std::mem::take(&mut share.unsorted_marks);
            share.marks = Marks::new(marks.into_iter().map(|(_, mark)| mark).collect());
        }
    }
}

/// Cost of a record and a stream in a budget, in addition to the bytes.
pub(super) const RECORD_COST: u64 = 64;
pub(super) const STREAM_COST: u64 = 128;

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

impl Share {
    /// Returns true if there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.marks.count() == 0
    }

    /// Returns the shard's last block in the segment.
    pub(super) fn end(&self) -> ShardEnd {
        self.end
    }

    /// Counts the pieces of the shard's records, trims and erases. Stops above `count_max`.
    fn count_entries(&self, count_max: usize) -> usize {
        let mut count = self.marks.count();
        let mut left = &self.items[..];
        while !left.is_empty() && count <= count_max {
            left = &left[piece_count(left)..];
            count += 1;
        }
        count
    }

    /// Returns the pieces of the shard's records. `bytes` are those of the segment's blocks.
    fn pieces(&self, bytes: &[u8], blocks: &[Block]) -> Vec<PieceSummary> {
        let mut pieces = Vec::new();
        let mut left = &self.items[..];
        while let Some(first) = left.first() {
            let (items, others) = left.split_at(piece_count(left));
            let last = items.last().unwrap_or(first);
            let begin = first.place as usize - RECORD_HEADER_SIZE;
            let bytes = &bytes[begin..last.place as usize + last.length as usize];
            pieces.push(PieceSummary {
                stream: StreamId(first.stream),
                first: first.offset,
                last: last.offset,
                time_ms: blocks[first.block as usize].time_ms,
                count: items.len() as u32,
                place: (SEGMENT_HEADER_SIZE as usize + begin) as u32,
                length: bytes.len() as u32,
                checksum: crc32c::crc32c(bytes),
            });
            left = others;
        }
        pieces
    }

    /// Begins the next stream and returns its state as of this segment.
    fn next_stream(&mut self, shard: ShardId, line: &dyn Line) -> Option<Entry> {
        let left = &self.items[self.at..];
        let item = left.first().map(|item| item.stream);
        let stream = item.into_iter().chain(self.marks.stream()).min()?;
        let count = left.iter().take_while(|item| item.stream == stream).count();
        let last = left[..count].last().map(|item| item.offset);
        let entry = self.marks.entry(shard, stream, last, line);
        self.open = Some(OpenStream {
            end: self.at + count,
            start: entry.start,
        });
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

fn damaged(sealed: &SealedSegment, position: Position) -> FilingError {
    FilingError::Damaged {
        path: segment::path(sealed.segment.header.sequence),
        position,
    }
}

//! Scans the whole blocks of a segment in order.

use std::io;

use super::{SEGMENT_HEADER_SIZE, Segment};
use crate::Position;
use crate::block::{BLOCK_ALIGNMENT, BLOCK_HEADER_SIZE, BLOCK_MAGIC, BlockHeader, Seed};

/// Bytes per read, unless a block is larger or the caller wants more.
const WINDOW_SIZE: u64 = 256 << 10;

/// A whole block: its CRC matches, and its position is right.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    /// The header.
    pub header: BlockHeader,
    /// The records.
    pub body: &'a [u8],
}

/// A scan over the blocks of a segment.
#[derive(Debug)]
pub struct Scan {
    segment: Segment,
    seed: Seed,
    /// Offsets in the file: the next block, and the end of the blocks.
    at: u64,
    limit: u64,
    window: Vec<u8>,
    window_start: u64,
    window_size: u64,
    /// Bytes of the window that were read; the rest is of no use.
    filled: usize,
}

impl Scan {
    /// Scans from the first block to `end`: the successor's `previous_end`, or the segment's own
    /// limit if it has no successor.
    pub fn new(segment: &Segment, end: Position) -> Scan {
        let limit = end.0.saturating_sub(segment.header.base.0);
        Scan {
            seed: segment.header.seed(),
            at: SEGMENT_HEADER_SIZE,
            limit: limit.min(segment.header.size),
            window: Vec::new(),
            window_start: 0,
            window_size: WINDOW_SIZE,
            filled: 0,
            segment: segment.clone(),
        }
    }

    /// Scans from a block's position to `end`.
    pub fn from(segment: &Segment, position: Position, end: Position) -> Scan {
        Scan {
            at: position.0.saturating_sub(segment.header.base.0),
            ..Scan::new(segment, end)
        }
    }

    /// Scans like [`Scan::new`] but reads the whole segment at once, for [`Scan::into_bytes`], into
    /// `memory` if it is large enough.
    pub fn at_once(segment: &Segment, end: Position, memory: Vec<u8>) -> Scan {
        Scan {
            window: memory,
            window_size: segment.header.size,
            ..Scan::new(segment, end)
        }
    }

    /// Returns the bytes of all blocks that a [`Scan::at_once`] covered, from the first block on.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.window.truncate(self.filled);
        self.window
    }

    /// Returns the position of the next block. After the last block of a sealed segment it is
    /// `end`; anything less is damage.
    pub fn position(&self) -> Position {
        Position(self.segment.header.base.0 + self.at)
    }

    /// Returns the next block; `None` if there is no whole block at [`Scan::position`].
    pub fn next_block(&mut self) -> io::Result<Option<BlockView<'_>>> {
        let Some(header) = self.probe(self.at)? else {
            return Ok(None);
        };
        let start = (self.at - self.window_start) as usize;
        let end = start + header.length as usize;
        self.at = header.end().0 - self.segment.header.base.0;
        Ok(Some(BlockView {
            header,
            body: &self.window[start + BLOCK_HEADER_SIZE..end],
        }))
    }

    /// Finds the next whole block after [`Scan::position`], at any alignment; the scan continues
    /// there. `None` if there is no more.
    pub fn seek(&mut self) -> io::Result<Option<BlockHeader>> {
        let mut at = self.at + BLOCK_ALIGNMENT;
        while at + BLOCK_HEADER_SIZE as u64 <= self.limit {
            self.fill(at, BLOCK_HEADER_SIZE as u64)?;
            let ahead = &self.window[(at - self.window_start) as usize..self.filled];
            let magic = ahead
                .chunks_exact(BLOCK_ALIGNMENT as usize)
                .position(|chunk| chunk[..BLOCK_MAGIC.len()] == BLOCK_MAGIC);
            let Some(chunk) = magic else {
                at += (ahead.len() as u64 / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT;
                continue;
            };
            at += chunk as u64 * BLOCK_ALIGNMENT;
            if let Some(header) = self.probe(at)? {
                self.at = at;
                return Ok(Some(header));
            }
            at += BLOCK_ALIGNMENT;
        }
        Ok(None)
    }

    /// Returns the header of the whole block at `at` and leaves the block in the window.
    fn probe(&mut self, at: u64) -> io::Result<Option<BlockHeader>> {
        if at + BLOCK_HEADER_SIZE as u64 > self.limit {
            return Ok(None);
        }
        self.fill(at, BLOCK_HEADER_SIZE as u64)?;
        let start = (at - self.window_start) as usize;
        let Some(header) = BlockHeader::parse(&self.window[start..]) else {
            return Ok(None);
        };
        let belongs = header.position.0 == self.segment.header.base.0 + at
            && header.epoch == self.segment.header.epoch
            && u64::from(header.length) <= self.limit - at;
        if !belongs {
            return Ok(None);
        }
        self.fill(at, u64::from(header.length))?;
        let start = (at - self.window_start) as usize;
        let block = &self.window[start..start + header.length as usize];
        Ok(header.is_whole(block, self.seed).then_some(header))
    }

    /// Makes the window hold `length` bytes from `at` on. They must be within the limit.
    fn fill(&mut self, at: u64, length: u64) -> io::Result<()> {
        let window_end = self.window_start + self.filled as u64;
        if self.window_start <= at && at + length <= window_end {
            return Ok(());
        }
        let size = length.max(self.window_size).min(self.limit - at) as usize;
        self.filled = 0;
        if size > self.window.capacity() {
            // New memory is zero, so it is not filled with zeros before the read.
            self.window = vec![0; size];
        } else if size > self.window.len() {
            self.window.resize(size, 0);
        }
        self.segment.file.read_at(&mut self.window[..size], at)?;
        self.window_start = at;
        self.filled = size;
        Ok(())
    }
}

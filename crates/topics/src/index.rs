//! The index of a partition: a sparse list of blocks, each a run of batches in the stream.
//!
//! It is derived from the batches and bounded in size. A block has its start, its size in bytes and
//! its highest timestamp. Retention removes whole blocks.

use std::ops::Range;

use crate::partition::BatchPosition;

/// A run of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The stream number of its first batch.
    pub(crate) record: u64,
    /// Its first offset.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Its highest timestamp.
    pub(crate) timestamp_max: i64,
    /// The first offset of the first batch with the highest timestamp.
    pub(crate) peak: u64,
    /// When its newest batch was appended, in milliseconds since 1970-01-01 UTC.
    pub(crate) appended_ms: i64,
    /// The time from which its age counts: the newest [`dated_ms`] of its batches.
    pub(crate) dated_ms: i64,
}

/// The longest time after its append at which a record's timestamp counts for retention, in
/// milliseconds: one hour, Kafka's default of `message.timestamp.after.max.ms`.
pub(crate) const AHEAD_MS_MAX: i64 = 3_600_000;

/// Returns the time from which the age of a batch counts: its timestamp, at most [`AHEAD_MS_MAX`]
/// after the append, or the time of the append if it has no timestamp.
pub(crate) fn dated_ms(timestamp: i64, appended_ms: i64) -> i64 {
    match timestamp {
        ..0 => appended_ms,
        _ => timestamp.min(appended_ms.saturating_add(AHEAD_MS_MAX)),
    }
}

/// The facts of a batch that the index needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Its size in bytes.
    pub(crate) size: u32,
    /// The highest timestamp in the batch.
    pub(crate) timestamp_max: i64,
    /// The time from which its age counts.
    pub(crate) dated_ms: i64,
}

/// The highest timestamp, and the first batch that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The timestamp.
    pub timestamp: i64,
    /// The first offset of the batch.
    pub offset: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    blocks: Vec<Block>,
    blocks_max: usize,
    /// The size at which a new block begins, in bytes.
    block_bytes: u64,
    bytes: u64,
}

impl Index {
    pub(crate) fn new(block_bytes: u64, blocks_max: usize) -> Self {
        Self {
            blocks: Vec::new(),
            blocks_max: blocks_max.max(2),
            block_bytes: block_bytes.max(1),
            bytes: 0,
        }
    }

    /// Restores an index from its [`Index::parts`].
    pub(crate) fn restore(block_bytes: u64, blocks: Vec<Block>, blocks_max: usize) -> Self {
        let bytes = blocks
            .iter()
            .fold(0, |sum: u64, it| sum.saturating_add(it.bytes));
        Self {
            blocks,
            bytes,
            ..Self::new(block_bytes, blocks_max)
        }
    }

    /// Sets the times of every block.
    pub(crate) fn date<E>(
        &mut self,
        mut one: impl FnMut(&mut Block) -> Result<(), E>,
    ) -> Result<(), E> {
        self.blocks.iter_mut().try_for_each(&mut one)
    }

    pub(crate) fn parts(&self) -> (u64, &[Block]) {
        (self.block_bytes, &self.blocks)
    }

    pub(crate) fn appended(&mut self, place: BatchPosition, entry: Entry) {
        let (size, timestamp) = (u64::from(entry.size), entry.timestamp_max);
        self.bytes = self.bytes.saturating_add(size);
        match self.blocks.last_mut() {
            Some(block) if block.bytes < self.block_bytes => {
                block.bytes = block.bytes.saturating_add(size);
                if timestamp > block.timestamp_max {
                    (block.timestamp_max, block.peak) = (timestamp, place.offset);
                }
                block.appended_ms = block.appended_ms.max(place.now_ms);
                block.dated_ms = block.dated_ms.max(entry.dated_ms);
            }
            _ => self.blocks.push(Block {
                record: place.record,
                offset: place.offset,
                bytes: size,
                timestamp_max: timestamp,
                peak: place.offset,
                appended_ms: place.now_ms,
                dated_ms: entry.dated_ms,
            }),
        }
        if self.blocks.len() > self.blocks_max {
            self.thin();
        }
    }

    /// Merges the blocks in pairs.
    fn thin(&mut self) {
        self.block_bytes = self.block_bytes.saturating_mul(2);
        let pairs = self.blocks.chunks(2).map(|pair| match pair {
            [first, second] => first.with(second),
            rest => rest[0],
        });
        self.blocks = pairs.collect();
    }

    /// Replaces the blocks before `until`; the batch `rest` is the first one after it.
    pub(crate) fn replace(&mut self, until: u64, rest: u64, end: u64, before: Self) {
        let behind = self.blocks.partition_point(|it| it.offset < until);
        let mut blocks = before.blocks;
        self.date_like_before(&mut blocks, until);
        // Blocks on both sides of `until` may have been merged during the compaction.
        if let Some(across) = behind.checked_sub(1).map(|at| self.blocks[at])
            && self.blocks.get(behind).map_or(end, |it| it.offset) > until
        {
            blocks.push(Block {
                record: rest,
                offset: until,
                peak: across.peak.max(until),
                ..across
            });
        }
        blocks.extend_from_slice(&self.blocks[behind..]);
        let block_bytes = self.block_bytes.max(before.block_bytes);
        *self = Self::restore(block_bytes, blocks, self.blocks_max);
        while self.blocks.len() > self.blocks_max {
            self.thin();
        }
    }

    /// Gives the blocks that replace those before `until` the append times of the replaced ones:
    /// rewriting a batch does not make it younger.
    fn date_like_before(&self, blocks: &mut [Block], until: u64) {
        let ends: Vec<_> = blocks.iter().skip(1).map(|it| it.offset).collect();
        for (block, end) in blocks.iter_mut().zip(ends.into_iter().chain([until])) {
            let first = self.blocks.partition_point(|it| it.offset <= block.offset);
            let behind = self.blocks.partition_point(|it| it.offset < end);
            let replaced = &self.blocks[first.saturating_sub(1).min(behind)..behind];
            let newest = |time: fn(&Block) -> i64| replaced.iter().map(time).max();
            block.appended_ms = newest(|it| it.appended_ms).unwrap_or(block.appended_ms);
            block.dated_ms = newest(|it| it.dated_ms).unwrap_or(block.dated_ms);
        }
    }

    /// Returns an index without blocks and with the same block size.
    pub(crate) fn empty(&self) -> Self {
        Self::new(self.block_bytes, self.blocks_max)
    }

    /// Adapts to the present time: blocks that seem to be appended later, by a clock that was
    /// ahead, count as appended now. Otherwise they would stay for as long as the clock was ahead.
    pub(crate) fn notice_time(&mut self, now_ms: i64) {
        let first = self.blocks.first();
        if first.is_none_or(|block| block.appended_ms <= now_ms) {
            return;
        }
        for block in &mut self.blocks {
            block.appended_ms = block.appended_ms.min(now_ms);
            block.dated_ms = block.dated_ms.min(now_ms.saturating_add(AHEAD_MS_MAX));
        }
    }

    /// Drops the blocks that end at or before `log_start`.
    pub(crate) fn trim(&mut self, log_start: u64) {
        let gone = self.blocks.partition_point(|it| it.offset <= log_start);
        let gone = gone.saturating_sub(1);
        for block in self.blocks.drain(..gone) {
            self.bytes -= block.bytes;
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the batch from which to search for an offset.
    pub(crate) fn seek(&self, offset: u64) -> u64 {
        let behind = self.blocks.partition_point(|it| it.offset <= offset);
        let block = self.blocks.get(behind.saturating_sub(1));
        block.map_or(0, |it| it.record)
    }

    /// Returns the batch from which to search for the first timestamp that is not lower.
    pub(crate) fn seek_time(&self, timestamp: i64) -> Option<u64> {
        let mut blocks = self.blocks.iter();
        let block = blocks.find(|it| it.timestamp_max >= timestamp);
        block.map(|it| it.record)
    }

    /// Returns the highest timestamp, as far as it is known. If the peak of the first block is
    /// before `log_start`, the rest of that block has to be searched, unless another peak is
    /// higher.
    pub(crate) fn peak(&self, log_start: u64) -> (Option<Peak>, Option<Range<u64>>) {
        let (stale, sure) = match self.blocks.split_first() {
            Some((first, rest)) if first.peak < log_start => (Some(first), rest),
            _ => (None, &self.blocks[..]),
        };
        let best = sure.iter().reduce(|best, block| {
            if block.timestamp_max > best.timestamp_max {
                block
            } else {
                best
            }
        });
        let known = best.map(|block| Peak {
            timestamp: block.timestamp_max,
            offset: block.peak,
        });
        let unsure =
            stale.filter(|it| known.is_none_or(|known| it.timestamp_max >= known.timestamp));
        let until = self.blocks.get(1).map_or(u64::MAX, |it| it.record);
        (known, unsure.map(|block| block.record..until))
    }

    /// Returns the blocks, each with its end offset; `end` is that of the partition.
    pub(crate) fn blocks(&self, end: u64) -> impl Iterator<Item = (&Block, u64)> {
        let starts = self.blocks.iter().skip(1).map(|it| it.offset);
        self.blocks.iter().zip(starts.chain([end]))
    }
}

impl Block {
    fn with(&self, next: &Self) -> Self {
        let is_higher = next.timestamp_max > self.timestamp_max;
        let highest = if is_higher { next } else { self };
        Self {
            bytes: self.bytes.saturating_add(next.bytes),
            timestamp_max: highest.timestamp_max,
            peak: highest.peak,
            appended_ms: self.appended_ms.max(next.appended_ms),
            dated_ms: self.dated_ms.max(next.dated_ms),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests;

//! What is kept for how long.

use std::ops::Range;

use super::{Change, OutOfRange, Partition};

/// How much of a partition is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Records that are older are deleted, in milliseconds.
    pub ms: Option<i64>,
    /// Records that were appended less than this ago are not deleted for their age, whatever their
    /// timestamps say; in milliseconds.
    pub fresh_ms: i64,
    /// What is not needed for so many bytes goes.
    pub bytes: Option<u64>,
}

impl Partition {
    /// The records to delete now: whole blocks of the index from the beginning on, as Kafka deletes whole
    /// segments, and nothing that is not durable. The age of a batch counts from its highest timestamp,
    /// from its append if it has none, and at most from an hour after its append.
    pub fn decide_retention(&self, retention: Retention, now_ms: i64) -> Option<Change> {
        let oldest_ms = retention.ms.map(|ms| now_ms.saturating_sub(ms));
        let fresh_from_ms = now_ms.saturating_sub(retention.fresh_ms);
        let mut spare = retention
            .bytes
            .map_or(0, |bytes| self.index.bytes().saturating_sub(bytes));
        let mut log_start = self.log_start;
        for (block, end) in self.index.blocks(self.end) {
            let is_fresh = block.appended_ms > fresh_from_ms;
            let is_old = oldest_ms.is_some_and(|oldest_ms| block.dated_ms < oldest_ms) && !is_fresh;
            let is_spare = block.bytes <= spare;
            if end > self.durable || !(is_old || is_spare) {
                break;
            }
            spare -= block.bytes.min(spare);
            log_start = end;
        }
        (log_start > self.log_start).then_some(Change::LogStart(log_start))
    }

    /// What a client wants deleted: everything before `offset`, or all that readers may see.
    pub fn decide_delete(&self, offset: Option<u64>) -> Result<Option<Change>, OutOfRange> {
        let offset = offset.unwrap_or(self.shown);
        if offset > self.shown {
            return Err(OutOfRange {
                offset,
                log_start: self.log_start,
                end: self.shown,
            });
        }
        Ok((offset > self.log_start).then_some(Change::LogStart(offset)))
    }

    /// What is to be compacted, if so much is new that it is worth it: `dirty` of the bytes, from 0
    /// to 1. Neither what is still being written to nor what is not settled or not durable.
    pub fn decide_compaction(&self, dirty: f64) -> Option<Range<u64>> {
        let (range, ratio) = self.compactable()?;
        (ratio >= dirty).then_some(range)
    }

    /// The share of the bytes that could be compacted now which is new, from 0 to 1, if it is at least
    /// `dirty`.
    pub fn dirty_ratio(&self, dirty: f64) -> Option<f64> {
        let (_, ratio) = self.compactable()?;
        Some(ratio).filter(|ratio| *ratio >= dirty)
    }

    fn compactable(&self) -> Option<(Range<u64>, f64)> {
        let stable = self.last_stable().min(self.durable);
        let (mut total, mut new, mut until) = (0, 0, self.log_start);
        let mut blocks = self.index.blocks(self.end).peekable();
        while let Some((block, end)) = blocks.next() {
            if end > stable || blocks.peek().is_none() {
                break;
            }
            total += block.bytes;
            new += if end > self.cleaned { block.bytes } else { 0 };
            until = end;
        }
        (new > 0).then(|| (self.log_start..until, new as f64 / total as f64))
    }

    /// Up to where the newest compaction came.
    pub fn cleaned(&self) -> u64 {
        self.cleaned
    }
}

//! Retention, deletion and compaction of a partition.

use std::ops::Range;

use super::{Change, OutOfRange, Partition};
use crate::CompactionPolicy;
use crate::index::Block;

/// The retention limits of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The age from which records are deleted, in milliseconds.
    pub ms: Option<i64>,
    /// Records that were appended less than this ago are not deleted for their age, whatever their
    /// timestamps are; in milliseconds.
    pub fresh_ms: i64,
    /// The size above which the oldest records are deleted, in bytes.
    pub bytes: Option<u64>,
}

impl Partition {
    /// Takes the present time before a decision on ages: the clock may have been ahead when records
    /// were appended.
    pub fn notice_time(&mut self, now_ms: i64) {
        self.index.notice_time(now_ms);
    }

    /// Decides which records to delete now: whole blocks of the index from the beginning, as Kafka
    /// deletes whole segments, and only durable ones. The age of a batch counts from its highest
    /// timestamp, but at most from one hour after its append; without a timestamp it counts from
    /// its append.
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

    /// Decides a client's deletion (DeleteRecords): everything before `offset`, or all that readers
    /// may see.
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

    /// Returns the offsets to compact now and the share of their bytes that is not compacted yet,
    /// from 0 to 1; `None` if the policy does not require it yet. The last block is excluded until
    /// it is older than `segment.ms`, and so are records that are not stable or not durable.
    pub fn decide_compaction(
        &self,
        policy: &CompactionPolicy,
        now_ms: i64,
    ) -> Option<(Range<u64>, f64)> {
        // A block that was appended by a clock that was ahead has the age 0.
        let is_older = |block: &Block, ms| now_ms.saturating_sub(block.appended_ms).max(0) >= ms;
        let stable = self.last_stable().min(self.durable);
        let (mut total, mut new, mut until) = (0, 0, self.log_start);
        let mut is_overdue = false;
        let mut blocks = self.index.blocks(self.end).peekable();
        while let Some((block, end)) = blocks.next() {
            let is_written_to = blocks.peek().is_none() && !is_older(block, policy.segment_ms);
            let is_new = end > self.cleaned;
            let is_young = is_new && !is_older(block, policy.lag_ms_min);
            if end > stable || is_written_to || is_young {
                break;
            }
            total += block.bytes;
            if is_new {
                new += block.bytes;
                is_overdue |= is_older(block, policy.lag_ms_max);
            }
            until = end;
        }
        if new == 0 {
            return None;
        }
        let ratio = new as f64 / total as f64;
        let is_worth_it = is_overdue || ratio >= policy.dirty_ratio_min;
        is_worth_it.then_some((self.log_start..until, ratio))
    }

    /// Returns the end of the latest compaction.
    pub fn cleaned(&self) -> u64 {
        self.cleaned
    }
}

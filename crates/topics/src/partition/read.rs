//! What a reader is shown.

use super::Partition;
use crate::ProducerId;
use crate::index::Peak;
use crate::transactions::Aborted;

/// Which records a reader wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All that may be seen.
    Uncommitted,
    /// Those of transactions that are committed, and of none.
    Committed,
}

/// OFFSET_OUT_OF_RANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset} is not between {log_start} and {end}")]
pub struct OutOfRange {
    /// What was asked for.
    pub offset: u64,
    /// The first one.
    pub log_start: u64,
    /// Behind the last one.
    pub end: u64,
}

/// Which offset is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// The first.
    Earliest,
    /// The one behind the last that the reader may see.
    Latest,
    /// The first record that is not older.
    Time(i64),
    /// The first record with the highest timestamp.
    MaxTimestamp,
}

/// Where an offset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// This is it.
    Offset(u64),
    /// It is in the first batch that is not before `record` in the stream, has a timestamp of at
    /// least `timestamp`, and begins before `end`; if there is no such batch, there is no such offset.
    From {
        /// Where to begin.
        record: u64,
        /// What is looked for.
        timestamp: i64,
        /// Up to where the reader may see.
        end: u64,
    },
    /// As `From`, of the highest timestamp among the batches from `record` to before `until`, or of
    /// the batch at `known` if none of them is above it.
    Highest {
        /// Where to begin; nothing is to be looked through if it is not before `until`.
        record: u64,
        /// Up to which batch.
        until: u64,
        /// The highest of those that need no look.
        known: Option<Peak>,
    },
    /// There is none.
    Nowhere,
}

impl Partition {
    /// Up to where a reader may see.
    pub fn visible(&self, isolation: Isolation) -> u64 {
        match isolation {
            Isolation::Uncommitted => self.high_watermark(),
            Isolation::Committed => self.last_stable(),
        }
    }

    /// The batch in the stream from which on a reader at `offset` has to look for the one that holds
    /// it. What is behind [`Partition::visible`] is in range and nothing to read yet.
    pub fn seek(&self, offset: u64) -> Result<u64, OutOfRange> {
        if !(self.log_start..=self.end).contains(&offset) {
            return Err(OutOfRange {
                offset,
                log_start: self.log_start,
                end: self.end,
            });
        }
        Ok(self.index.seek(offset))
    }

    /// Where the offset is that somebody looks for.
    pub fn find(&self, what: Find, isolation: Isolation) -> Found {
        let end = self.visible(isolation);
        match what {
            Find::Earliest => Found::Offset(self.log_start),
            Find::Latest => Found::Offset(end),
            Find::Time(timestamp) => match self.index.seek_time(timestamp) {
                Some(record) => Found::From {
                    record,
                    timestamp,
                    end,
                },
                None => Found::Nowhere,
            },
            Find::MaxTimestamp => self.highest(),
        }
    }

    fn highest(&self) -> Found {
        let (known, unsure) = self.index.peak(self.log_start);
        match (known, unsure) {
            (None, None) => Found::Nowhere,
            (known, unsure) => {
                let unsure = unsure.unwrap_or(0..0);
                Found::Highest {
                    record: unsure.start,
                    until: unsure.end,
                    known,
                }
            }
        }
    }

    /// The transactions that were aborted and of which there is something in what a reader gets:
    /// from `offset` to before `end`. Whose they were and where they began, in the order of their
    /// ends.
    pub fn aborted(&self, offset: u64, end: u64) -> impl Iterator<Item = (ProducerId, u64)> + '_ {
        let within = self.transactions.aborted(offset, end);
        within.map(|Aborted { id, first, .. }| (*id, *first))
    }
}

//! Reads from a partition: visibility and search of offsets.

use super::Partition;
use crate::ProducerId;
use crate::index::Peak;
use crate::transactions::Aborted;

/// The isolation level of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All shown records (`read_uncommitted`).
    Uncommitted,
    /// Records of committed transactions, and those without one (`read_committed`).
    Committed,
}

/// The offset is outside of the partition: OFFSET_OUT_OF_RANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset} is not between {log_start} and {end}")]
pub struct OutOfRange {
    /// The requested offset.
    pub offset: u64,
    /// The first offset.
    pub log_start: u64,
    /// The end offset.
    pub end: u64,
}

/// The target of an offset search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// The first offset.
    Earliest,
    /// The offset after the last record that the reader may see.
    Latest,
    /// The first record that is not older than this timestamp.
    Time(i64),
    /// The first record with the highest timestamp.
    MaxTimestamp,
}

/// The result of an offset search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchResult {
    /// The offset.
    Offset(u64),
    /// The offset is in the first batch that is not before `record` in the stream, has a timestamp
    /// of at least `timestamp`, and begins before `end`; without such a batch, no offset is found.
    From {
        /// The batch at which the search begins.
        record: u64,
        /// The timestamp.
        timestamp: i64,
        /// The offset up to which the reader may read.
        end: u64,
    },
    /// As `From`, for the highest timestamp among the batches from `record` to before `until`, or
    /// the batch at `known` if none of them has a higher one.
    Highest {
        /// The batch at which the search begins; nothing is to be searched if it is not before
        /// `until`.
        record: u64,
        /// The batch before which the search ends.
        until: u64,
        /// The highest timestamp among the other batches.
        known: Option<Peak>,
    },
    /// No record matches.
    Nowhere,
}

impl Partition {
    /// Returns the offset before which a reader may read.
    pub fn visible(&self, isolation: Isolation) -> u64 {
        match isolation {
            Isolation::Uncommitted => self.high_watermark(),
            Isolation::Committed => self.last_stable(),
        }
    }

    /// Returns the stream number of the batch from which a reader searches for `offset`. An offset
    /// beyond [`Partition::visible`] is in range, but has no record to read yet.
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

    /// Searches an offset.
    pub fn find(&self, what: Find, isolation: Isolation) -> SearchResult {
        let end = self.visible(isolation);
        match what {
            Find::Earliest => SearchResult::Offset(self.log_start),
            Find::Latest => SearchResult::Offset(end),
            Find::Time(timestamp) => match self.index.seek_time(timestamp) {
                Some(record) => SearchResult::From {
                    record,
                    timestamp,
                    end,
                },
                None => SearchResult::Nowhere,
            },
            Find::MaxTimestamp => self.highest(),
        }
    }

    fn highest(&self) -> SearchResult {
        let (known, unsure) = self.index.peak(self.log_start);
        match (known, unsure) {
            (None, None) => SearchResult::Nowhere,
            (known, unsure) => {
                let unsure = unsure.unwrap_or(0..0);
                SearchResult::Highest {
                    record: unsure.start,
                    until: unsure.end,
                    known,
                }
            }
        }
    }

    /// Returns the aborted transactions with records from `offset` to before `end`: their producers
    /// and first offsets, ordered by their ends.
    pub fn aborted(&self, offset: u64, end: u64) -> impl Iterator<Item = (ProducerId, u64)> + '_ {
        let within = self.transactions.aborted(offset, end);
        within.map(|Aborted { id, first, .. }| (*id, *first))
    }
}

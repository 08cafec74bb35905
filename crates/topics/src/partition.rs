//! A partition: the offsets of batches, and how far readers may read.
//!
//! ```text
//!   log start          last stable         shown          end
//!      │                   │                 │             │
//!   ───┴───────────────────┴─────────────────┴─────────────┴──▸ offsets
//!      └─ read_committed ──┘                 │
//!      └─────────── read_uncommitted ────────┘
//! ```
//!
//! Kafka calls `shown` the high watermark. Durable records are shown; for a topic with lower
//! durability, records may be shown before they are durable ([`Partition::show`]). A batch is
//! decided on ([`Partition::decide`]), written at the place of the decision, and then applied
//! ([`Partition::appended`]), all under one lock, so that the order of decisions is that of the
//! stream. The same calls restore the partition from its [`Partition::encode`] and the later
//! records of its stream.

mod read;
mod retention;
mod terms;
mod view;

pub use read::{Find, Isolation, OutOfRange, SearchResult};
pub use retention::Retention;
pub use terms::{
    Batch, BatchPosition, Change, Decision, Ending, Limits, Marker, Refusal, Sequenced,
};
pub use view::ProducerView;

use crate::epochs::Epochs;
use crate::index::{Entry, Index, dated_ms};
use crate::producers::Producers;
use crate::transactions::{Aborted, Transactions};
use crate::{ProducerId, producers};

/// The timestamp of a batch that has none.
const NO_TIMESTAMP: i64 = -1;

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub(crate) limits: Limits,
    pub(crate) log_start: u64,
    pub(crate) end: u64,
    pub(crate) durable: u64,
    pub(crate) shown: u64,
    pub(crate) cleaned: u64,
    pub(crate) epochs: Epochs,
    pub(crate) index: Index,
    pub(crate) producers: Producers,
    pub(crate) transactions: Transactions,
}

impl Partition {
    /// Returns an empty partition.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            log_start: 0,
            end: 0,
            durable: 0,
            shown: 0,
            cleaned: 0,
            epochs: Epochs::default(),
            index: Index::new(limits.block_bytes, limits.blocks_max),
            producers: Producers::default(),
            transactions: Transactions::default(),
        }
    }

    /// Decides whether a client's batch is appended or a duplicate.
    pub fn decide(&self, batch: &Batch) -> Result<Decision, Refusal> {
        let offset = self.end;
        let Some(producer) = &batch.producer else {
            return Ok(Decision::Append { offset });
        };
        match self.producers.judge(producer, batch)? {
            None => Ok(Decision::Append { offset }),
            Some(past) => Ok(Decision::Duplicate {
                offset: past.offset,
                end: past.offset + u64::from(past.offsets),
                timestamp: past.timestamp,
            }),
        }
    }

    /// Returns the offset of a marker. A marker without a transaction is accepted too, because a
    /// coordinator may have to repeat it.
    pub fn decide_marker(&self, marker: &Marker) -> Result<u64, Refusal> {
        self.producers.judge_marker(marker)?;
        Ok(self.end)
    }

    /// Applies a batch that was written as [`Partition::decide`] said, or that was read from the
    /// stream. After compaction there may be a gap between the end and its offset.
    pub fn appended(&mut self, place: BatchPosition, batch: &Batch) {
        debug_assert!(place.offset >= self.end, "offsets are never used twice");
        let begins = batch
            .producer
            .and_then(|producer| self.producers.appended(place, &producer, batch));
        if let Some(id) = begins {
            self.transactions.begin(id, place.offset);
        }
        self.producers.forget_above(self.limits.producers_max);
        let entry = Entry {
            size: batch.size,
            timestamp_max: batch.timestamp_max,
            dated_ms: dated_ms(batch.timestamp_max.max(batch.timestamp_base), place.now_ms),
        };
        self.index.appended(place, entry);
        self.end = place.offset + u64::from(batch.offsets);
    }

    /// Applies a marker, as [`Partition::appended`] does for a batch.
    pub fn marked(&mut self, place: BatchPosition, marker: &Marker) {
        debug_assert!(place.offset >= self.end, "offsets are never used twice");
        if let Some(first) = self.producers.marked(place, marker) {
            self.transactions
                .finish(marker.id, first..place.offset, marker.ending);
        }
        self.producers.forget_above(self.limits.producers_max);
        let entry = Entry {
            size: marker.size,
            // A marker is not a record, so no search by time finds it.
            timestamp_max: NO_TIMESTAMP,
            dated_ms: dated_ms(marker.timestamp, place.now_ms),
        };
        self.index.appended(place, entry);
        self.end = place.offset + 1;
    }

    /// Sets that everything before `end` is durable.
    pub fn durable(&mut self, end: u64) {
        self.durable = self.durable.max(end.min(self.end));
        self.show(self.durable);
    }

    /// Lets readers see everything before `end`, durable or not.
    pub fn show(&mut self, end: u64) {
        self.shown = self.shown.max(end.min(self.end));
        self.transactions.shown(self.shown);
    }

    /// Applies a change that was written.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::LogStart(offset) => {
                self.log_start = self.log_start.max(offset.min(self.end));
                self.epochs.trim(self.log_start);
                self.index.trim(self.log_start);
                self.transactions.trim(self.log_start);
            }
            Change::Leader { epoch, start } => self.epochs.begin(epoch, start),
            Change::Cleaned(offset) => {
                self.cleaned = self.cleaned.max(offset);
                self.transactions.trim(offset);
            }
        }
    }

    /// Forgets producers that were silent for `silent_ms` and have no open transaction.
    pub fn expire(&mut self, now_ms: i64, silent_ms: i64) {
        self.producers.expire(now_ms, silent_ms);
    }

    /// Returns the first offset that exists.
    pub fn log_start(&self) -> u64 {
        self.log_start
    }

    /// Returns the next offset.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the offset before which everything is durable.
    pub fn durable_end(&self) -> u64 {
        self.durable
    }

    /// Returns the offset before which readers may read: the high watermark.
    pub fn high_watermark(&self) -> u64 {
        self.shown
    }

    /// Returns the last stable offset: no shown record before it belongs to an open transaction.
    pub fn last_stable(&self) -> u64 {
        let unstable = self.transactions.first_unstable();
        unstable
            .unwrap_or(self.shown)
            .min(self.shown)
            .max(self.log_start)
    }

    /// Returns the known producers.
    pub fn producers(&self) -> impl Iterator<Item = ProducerView> + '_ {
        self.producers.iter().map(ProducerView::from)
    }

    /// Returns the producer of this id, if it is known.
    pub fn producer(&self, id: ProducerId) -> Option<ProducerView> {
        self.producers
            .get(id)
            .map(|entry| ProducerView::from((id, entry)))
    }

    /// Returns the size of all batches in bytes, to the accuracy of a block.
    pub fn size(&self) -> u64 {
        self.index.bytes()
    }

    pub(crate) fn all_aborted(&self) -> &[Aborted] {
        self.transactions.all_aborted()
    }

    /// Returns the newest epoch that is not newer than `epoch`, and its end offset; `None` if it is
    /// unknown.
    pub fn end_of_epoch(&self, epoch: i32) -> Option<(i32, u64)> {
        self.epochs.end_of(epoch, self.shown)
    }

    /// Returns the epoch of the record at this offset, or of the next one; `None` if it is unknown.
    pub fn epoch_at(&self, offset: u64) -> Option<i32> {
        self.epochs.at(offset)
    }

    /// Returns the leader's epoch; `None` before the first leader.
    pub fn leader_epoch(&self) -> Option<i32> {
        self.epochs.newest()
    }
}

impl From<(ProducerId, &producers::Entry)> for ProducerView {
    fn from((id, entry): (ProducerId, &producers::Entry)) -> Self {
        Self {
            id,
            epoch: entry.epoch,
            last_sequence: entry.last_sequence(),
            last_ms: entry.last_ms,
            coordinator_epoch: entry.coordinator_epoch,
            transaction_start: entry.transaction,
        }
    }
}

#[cfg(test)]
mod tests;

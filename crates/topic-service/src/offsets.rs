//! Offset queries of a partition: log start, high watermark, offset by timestamp, size.

use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use journal::{ReadLimit, Ticket};
use platform::{Durable, Pending};
use recordbatch::codecs::unpack;
use recordbatch::{Batch, Compression, NO_TIMESTAMP, Records};
use topics::record::CHANGE;
use topics::{Change, Find, Isolation, ProducerView, SearchResult};

use super::error::ReadOnly;
use super::error::{FetchError, Storage, UnknownPartition};
use super::keys::UNPACKED_SIZE_MAX;
use super::partition::{Live, Slot};
use super::reader::{Next, SlotSnapshot, Stored, Walked};
use crate::service::Topics;
use crate::topic::Topic;
use store::Reach;

/// The result of an offset query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The offset.
    pub offset: u64,
    /// Timestamp of the record, for a query by time; else -1.
    pub timestamp: i64,
    /// Epoch of the leader that wrote the record, or that would write the next one; -1 if unknown.
    pub leader_epoch: i32,
}

/// The value of an unknown epoch.
const NO_EPOCH: i32 = -1;

/// Offsets and size of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// The first available offset.
    pub log_start: u64,
    /// The high watermark: readers see the records before it.
    pub high_watermark: u64,
    /// The last stable offset: every transaction before it has ended.
    pub last_stable: u64,
    /// The next offset to be assigned.
    pub end: u64,
    /// Size of all batches, in bytes.
    pub size: u64,
    /// The current leader epoch.
    pub leader_epoch: i32,
}

/// The result of one search: outer `None` if the data is out of reach, inner `None` if no offset
/// matches.
type Looked = Result<Option<Option<Located>>, FetchError>;

/// Limit of one read while searching for an offset.
const CHUNK: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

impl Topics {
    /// Resolves an offset (ListOffsets); `None` if there is none.
    pub fn locate(
        &self,
        topic: &Topic,
        partition: u32,
        what: Find,
        isolation: Isolation,
    ) -> Pending<Option<Located>, FetchError> {
        if let Some(events) = &topic.events {
            return self.locate_events(events, partition, what);
        }
        let slot = match topic.slot(partition) {
            Ok(slot) => slot.clone(),
            Err(unknown) => return Pending::known(Err(unknown.into())),
        };
        match self.look(Reach::Memory, &slot, what, isolation).transpose() {
            Some(located) => Pending::known(located),
            None => self.look_elsewhere(slot, what, isolation),
        }
    }

    fn look_elsewhere(
        &self,
        slot: Arc<Slot>,
        what: Find,
        isolation: Isolation,
    ) -> Pending<Option<Located>, FetchError> {
        let topics = self.clone();
        let look = move || topics.look(Reach::Disk, &slot, what, isolation);
        let later = match self.state.platform.offload_value(look) {
            Ok(later) => later,
            Err(overloaded) => return Pending::known(Err(Storage::from(overloaded).into())),
        };
        // The disk is within reach: data that is not found there does not exist.
        Pending::steps(move |waker| match later.take(waker) {
            Some(looked) => Poll::Ready(looked.map(Option::flatten)),
            None => Poll::Pending,
        })
    }

    fn look(&self, reach: Reach, slot: &Slot, what: Find, isolation: Isolation) -> Looked {
        let (found, offsets, standing) = {
            let live = slot.lock(&self.state.journal)?;
            let partition = &live.partition;
            let found = partition.find(what, isolation);
            if let SearchResult::Offset(offset) = found {
                let located = Located::at(offset, partition.epoch_at(offset));
                return Ok(Some(Some(located)));
            }
            let offsets = partition.log_start()..partition.visible(isolation);
            let standing = live.standing(slot, offsets.start, usize::MAX);
            (found, offsets, standing)
        };
        let mut seeking = Seeking::new(offsets);
        match found {
            SearchResult::Nowhere | SearchResult::Offset(_) => return Ok(Some(None)),
            SearchResult::From {
                record, timestamp, ..
            } => {
                seeking.least = timestamp;
                self.seek(reach, &standing, record, &mut seeking)
            }
            SearchResult::Highest {
                record,
                until,
                known,
            } => {
                if let Some(known) = known {
                    let from = slot
                        .lock(&self.state.journal)?
                        .partition
                        .seek(known.offset)?;
                    seeking.least = known.timestamp;
                    let Some(()) = self.seek(reach, &standing, from, &mut seeking)? else {
                        return Ok(None);
                    };
                    seeking.least = known.timestamp.saturating_add(1);
                }
                seeking.until = until;
                seeking.is_highest = true;
                match record < until {
                    true => self.seek(reach, &standing, record, &mut seeking),
                    false => Ok(Some(())),
                }
            }
        }?
        .filter(|()| reach == Reach::Disk || !seeking.is_compressed())
        .map(|()| seeking.found.map(|it| it.locate()).transpose())
        .transpose()
    }

    /// Searches the batches from a record on; `None` if they are out of reach.
    fn seek(
        &self,
        reach: Reach,
        standing: &SlotSnapshot,
        from: u64,
        seeking: &mut Seeking,
    ) -> Result<Option<()>, FetchError> {
        match self.walk_shown(reach, standing, from, CHUNK, |it| seeking.take(it))? {
            Walked::OutOfReach => Ok(None),
            // The searched records were trimmed meanwhile.
            Walked::Done | Walked::Trimmed => Ok(Some(())),
        }
    }

    /// Returns the newest epoch up to `epoch`, and the offset after its last record
    /// (OffsetForLeaderEpoch); `None` if unknown.
    pub fn end_of_epoch(
        &self,
        topic: &Topic,
        partition: u32,
        epoch: i32,
    ) -> Result<Option<(i32, u64)>, UnknownPartition> {
        if let Some(events) = &topic.events {
            let view = self.view_events(events, partition)?;
            let of = view.leader_epoch;
            return Ok((epoch >= of).then_some((of, view.end)));
        }
        let live = topic.slot(partition)?.lock(&self.state.journal)?;
        Ok(live.partition.end_of_epoch(epoch))
    }

    /// Deletes the records before an offset, or all visible records (DeleteRecords); answered with
    /// the new log start when that is durable.
    pub fn delete_records(
        &self,
        topic: &Topic,
        partition: u32,
        before: Option<u64>,
    ) -> Pending<u64, FetchError> {
        match self.delete_before(topic, partition, before) {
            Ok((log_start, durable)) => Pending::after(durable, log_start),
            Err(error) => Pending::known(Err(error)),
        }
    }

    fn delete_before(
        &self,
        topic: &Topic,
        partition: u32,
        before: Option<u64>,
    ) -> Result<(u64, Durable), FetchError> {
        if topic.events.is_some() {
            return Err(ReadOnly.into());
        }
        let slot = topic.slot(partition)?;
        let mut live = slot.lock(&self.state.journal)?;
        let tickets = match live.partition.decide_delete(before)? {
            Some(change) => [None, Some(self.change_partition(slot, &mut live, change)?)],
            None => [live.change_ticket(), None],
        };
        self.state.platform.need_sweep();
        let durable = Durable::new(&self.state.journal, tickets);
        Ok((live.partition.log_start(), durable))
    }

    /// Appends a change of a partition and applies it. It is written even on a full disk, because a
    /// raised log start frees space.
    pub(super) fn change_partition(
        &self,
        slot: &Slot,
        live: &mut Live,
        change: Change,
    ) -> Result<Ticket, Storage> {
        let journal = &self.state.journal;
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        let mut guard = journal.lock(slot.at.shard, self.now_ms()).for_room();
        let appended = guard.append(slot.at.stream, None, CHANGE, &bytes);
        let appended = appended.map_err(|error| Storage::append(journal, error))?;
        drop(guard);
        live.changed(change, appended.ticket).wake();
        Ok(appended.ticket)
    }

    /// Returns the offsets and size of a partition.
    pub fn view(&self, topic: &Topic, partition: u32) -> Result<PartitionView, UnknownPartition> {
        if let Some(events) = &topic.events {
            return self.view_events(events, partition);
        }
        let live = topic.slot(partition)?.lock(&self.state.journal)?;
        let partition = &live.partition;
        Ok(PartitionView {
            log_start: partition.log_start(),
            high_watermark: partition.high_watermark(),
            last_stable: partition.last_stable(),
            end: partition.end(),
            size: partition.size(),
            leader_epoch: live.epoch(),
        })
    }

    /// Returns the producers that a partition remembers (DescribeProducers).
    pub fn producers(
        &self,
        topic: &Topic,
        partition: u32,
    ) -> Result<Vec<ProducerView>, UnknownPartition> {
        let live = topic.slot(partition)?.lock(&self.state.journal)?;
        Ok(live.partition.producers().collect())
    }
}

impl Located {
    fn at(offset: u64, epoch: Option<i32>) -> Self {
        Self {
            offset,
            timestamp: NO_TIMESTAMP,
            leader_epoch: epoch.unwrap_or(NO_EPOCH),
        }
    }
}

/// A search for a batch by timestamp.
struct Seeking {
    offsets: Range<u64>,
    /// The record at which the search ends (exclusive).
    until: u64,
    /// The lowest maximum timestamp that matches.
    least: i64,
    /// True to find the highest timestamp, false to find the first match.
    is_highest: bool,
    found: Option<FoundBatch>,
}

struct FoundBatch {
    batch: Stored,
    timestamp: i64,
    log_start: u64,
}

impl Seeking {
    fn new(offsets: Range<u64>) -> Self {
        Self {
            offsets,
            until: u64::MAX,
            least: i64::MIN,
            is_highest: false,
            found: None,
        }
    }

    /// Returns whether the batch must be unpacked, which must not happen on a thread that serves
    /// connections.
    fn is_compressed(&self) -> bool {
        let found = self.found.as_ref();
        found.is_some_and(|it| it.batch.header.attributes.compression() != Some(Compression::None))
    }

    fn take(&mut self, stored: Stored) -> Next {
        if stored.offset() >= self.offsets.end || stored.record >= self.until {
            return Next::Enough;
        }
        let timestamp = stored.header.max_timestamp;
        let is_control = stored.header.attributes.is_control();
        if is_control || stored.end() <= self.offsets.start || timestamp < self.least {
            return Next::More;
        }
        let sought = match self.is_highest {
            true => timestamp,
            false => self.least,
        };
        self.found = Some(FoundBatch {
            batch: stored,
            timestamp: sought,
            log_start: self.offsets.start,
        });
        self.least = timestamp.saturating_add(1);
        match self.is_highest {
            true => Next::More,
            false => Next::Enough,
        }
    }
}

impl FoundBatch {
    /// Returns the first record in the batch that is not older than the time.
    fn locate(self) -> Result<Located, FetchError> {
        let (batch, _) = Batch::split(&self.batch.bytes).map_err(Storage::unreadable)?;
        let epoch = Some(batch.header().leader_epoch);
        let payload = unpack(&batch, UNPACKED_SIZE_MAX).map_err(Storage::unreadable)?;
        for record in Records::new(batch.header(), &payload) {
            let record = record.map_err(Storage::unreadable)?;
            let offset = record.offset.unsigned_abs();
            if record.timestamp >= self.timestamp && offset >= self.log_start {
                return Ok(Located {
                    timestamp: record.timestamp,
                    ..Located::at(offset, epoch)
                });
            }
        }
        // The producer's header promises a higher timestamp than its records have: answer with the
        // header's.
        Ok(Located {
            timestamp: batch.header().max_timestamp,
            ..Located::at(self.batch.offset().max(self.log_start), epoch)
        })
    }
}

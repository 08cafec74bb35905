//! Reads batches for fetch requests, without waiting; [`super::fetching`] waits for more.

use std::sync::Arc;

use bytes::Bytes;
use journal::{ReadLimit, StoredBytes};
use topics::{Isolation, ProducerId};

use super::error::{FetchError, Storage};
use super::partition::{Live, Slot};
use super::reader::{Next, SlotSnapshot, Stored, Walked, look_through};
use crate::service::Topics;
use crate::topic::Topic;
use store::Reach;

/// A fetch request for one partition.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The topic.
    pub topic: Arc<Topic>,
    /// The partition, from 0.
    pub partition: u32,
    /// The offset of the first record.
    pub offset: u64,
    /// Maximum bytes; the first batch is returned even if it is larger.
    pub bytes_max: usize,
    /// The leader epoch that the reader knows.
    pub leader_epoch: Option<i32>,
}

/// The place of the batches that a fetch returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPlacement {
    /// All of them are in memory.
    Memory,
    /// Long ones stay in the files that they are filed in, to be sent from there. Their checksums were
    /// compared when they were last read from the device.
    AsStored,
}

/// Limits of a fetch over all its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// The isolation level.
    pub isolation: Isolation,
    /// Minimum bytes to wait for; 0 to answer at once.
    pub bytes_min: usize,
    /// Maximum bytes; the first batch is returned even if it is larger.
    pub bytes_max: usize,
    /// The place of the returned batches.
    pub placement: BatchPlacement,
}

/// The fetched batches and the state of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Whole batches in order, as stored; the first one contains the requested offset. They share
    /// memory and files with other readers: copy them to hold them for long.
    pub batches: Vec<StoredBytes>,
    /// The high watermark. Everything before it is durable, unless the topic's durability is
    /// weaker.
    pub high_watermark: u64,
    /// The last stable offset: every transaction before it has ended.
    pub last_stable: u64,
    /// The first available offset.
    pub log_start: u64,
    /// Aborted transactions with records in the batches, as producer and first offset, for readers
    /// of committed records.
    pub aborted: Vec<(ProducerId, u64)>,
}

impl Fetched {
    /// Returns the bytes of all batches.
    pub fn size(&self) -> usize {
        self.batches.iter().map(StoredBytes::size).sum()
    }
}

/// Maximum bytes read before the batch that contains the offset, on top of the requested bytes.
const SKIPPED_SIZE: usize = 64 << 10;

/// Attempts to find a batch again whose records were trimmed while it was being read.
const TRIES: usize = 8;

/// The answers for all partitions; `None` if some data is out of reach.
pub(super) type Gathered = Option<Vec<Result<Fetched, FetchError>>>;

/// A snapshot of a partition at the time of the read.
struct PartitionSnapshot {
    fetched: Fetched,
    standing: SlotSnapshot,
    /// The end of the records that the reader may see.
    visible: u64,
    /// The record from which to search for the offset, if there may be data.
    record: Option<u64>,
}

impl Topics {
    /// Reads the requested partitions once; `None` if some data is out of reach.
    pub(super) fn gather(&self, reach: Reach, asks: &[Ask], limits: FetchLimits) -> Gathered {
        let mut gathered = Vec::with_capacity(asks.len());
        let mut size = 0;
        for ask in asks {
            let fetched = match self.gather_one(reach, ask, limits, size) {
                Ok(None) => return None,
                Ok(Some(fetched)) => Ok(fetched),
                Err(error) => Err(error),
            };
            size += fetched.as_ref().map_or(0, Fetched::size);
            gathered.push(fetched);
        }
        Some(gathered)
    }

    fn gather_one(
        &self,
        reach: Reach,
        ask: &Ask,
        limits: FetchLimits,
        before: usize,
    ) -> Result<Option<Fetched>, FetchError> {
        let room = limits.bytes_max.saturating_sub(before).min(ask.bytes_max);
        if let Some(events) = &ask.topic.events {
            return self.gather_events(reach, events, ask, room, before);
        }
        let slot = ask.topic.slot(ask.partition)?;
        for _ in 0..TRIES {
            let seen = self.see(slot, ask, room, limits.isolation)?;
            let Some(record) = seen.record else {
                return Ok(Some(seen.fetched));
            };
            if room == 0 && before > 0 {
                return Ok(Some(seen.fetched));
            }
            let mut taking = Taking {
                batches: Vec::new(),
                size: 0,
                size_max: room,
                is_first: before == 0,
                from: ask.offset,
                visible: seen.visible,
                last: None,
            };
            let limit = ReadLimit {
                records: usize::MAX,
                bytes: room.saturating_add(SKIPPED_SIZE),
            };
            let placement = limits.placement;
            match self.take(reach, &seen.standing, record, limit, placement, &mut taking)? {
                Walked::OutOfReach => return Ok(None),
                // The start was trimmed meanwhile: check again whether the offset is out of range.
                Walked::Trimmed => continue,
                Walked::Done => {}
            }
            let fetched = Fetched {
                batches: taking.batches,
                ..seen.fetched
            };
            return Ok(Some(match taking.last {
                Some((record, end)) => {
                    self.finish(slot, ask.offset, record, end, limits.isolation, fetched)?
                }
                None => fetched,
            }));
        }
        Err(Storage::unreadable("the beginning goes faster than it is read").into())
    }

    /// Takes batches from a record on, or from memory if all of them are there.
    fn take(
        &self,
        reach: Reach,
        standing: &SlotSnapshot,
        record: u64,
        limit: ReadLimit,
        placement: BatchPlacement,
        taking: &mut Taking,
    ) -> Result<Walked, Storage> {
        if standing.is_kept(taking.from) {
            look_through::<Bytes>(standing, 0, |it| taking.take(it))?;
            return Ok(Walked::Done);
        }
        match placement {
            BatchPlacement::Memory => {
                self.walk_shown::<Bytes>(reach, standing, record, limit, |it| taking.take(it))
            }
            BatchPlacement::AsStored => {
                self.walk_shown::<StoredBytes>(reach, standing, record, limit, |it| taking.take(it))
            }
        }
    }

    /// Takes a snapshot of a partition for a reader that has room for `size` bytes.
    fn see(
        &self,
        slot: &Slot,
        ask: &Ask,
        room: usize,
        isolation: Isolation,
    ) -> Result<PartitionSnapshot, FetchError> {
        let mut live = slot.lock(&self.state.journal)?;
        live.check_epoch(ask.leader_epoch)?;
        let visible = live.partition.visible(isolation);
        let sought = live.partition.seek(ask.offset)?;
        let record = (ask.offset < visible).then(|| live.hints.find(ask.offset).unwrap_or(sought));
        if ask.offset == live.partition.end() {
            let next = live.next_number();
            live.hints.note(ask.offset, next);
        }
        Ok(PartitionSnapshot {
            fetched: Fetched {
                batches: Vec::new(),
                high_watermark: live.partition.high_watermark(),
                last_stable: live.partition.last_stable(),
                log_start: live.partition.log_start(),
                aborted: Vec::new(),
            },
            standing: live.standing(slot, ask.offset, room),
            visible,
            record,
        })
    }

    /// Completes the answer once its batches are known. They end before offset `end`, with that
    /// record.
    fn finish(
        &self,
        slot: &Slot,
        from: u64,
        record: u64,
        end: u64,
        isolation: Isolation,
        fetched: Fetched,
    ) -> Result<Fetched, FetchError> {
        let mut live = slot.lock(&self.state.journal)?;
        live.hints.note(end, record + 1);
        let aborted = match isolation {
            Isolation::Committed => live.partition.aborted(from, end).collect(),
            Isolation::Uncommitted => Vec::new(),
        };
        Ok(Fetched { aborted, ..fetched })
    }
}

impl Live {
    /// Checks the reader's leader epoch against the current one.
    pub(super) fn check_epoch(&self, asked: Option<i32>) -> Result<(), FetchError> {
        let current = self.epoch();
        match asked {
            Some(asked) if asked < current => Err(FetchError::Fenced { asked, current }),
            Some(asked) if asked > current => Err(FetchError::Ahead { asked, current }),
            _ => Ok(()),
        }
    }
}

/// Collects batches from an offset on, up to a size limit.
struct Taking {
    batches: Vec<StoredBytes>,
    size: usize,
    size_max: usize,
    /// True until the first batch, which is taken even if it exceeds the limit.
    is_first: bool,
    from: u64,
    visible: u64,
    /// The record of the last batch, and the offset after it.
    last: Option<(u64, u64)>,
}

impl Taking {
    fn take(&mut self, stored: Stored<impl Into<StoredBytes>>) -> Next {
        if stored.end() <= self.from {
            return Next::More;
        }
        if stored.offset() >= self.visible {
            return Next::Enough;
        }
        let (last, bytes) = ((stored.record, stored.end()), stored.bytes.into());
        let size = self.size + bytes.size();
        let must = self.is_first && self.batches.is_empty();
        if size > self.size_max && !must {
            return Next::Enough;
        }
        self.last = Some(last);
        self.batches.push(bytes);
        self.size = size;
        match self.size >= self.size_max {
            true => Next::Enough,
            false => Next::More,
        }
    }
}

//! Handing out batches. [`super::fetching`] waits for more.

use std::sync::Arc;

use ::topics::{Isolation, ProducerId};
use bytes::Bytes;
use journal::ReadLimit;

use super::Topics;
use super::error::{FetchError, Storage};
use super::partition::{Live, Slot};
use super::reader::{Next, Standing, Stored, Walked, look_through};
use super::state::Topic;
use crate::store::Reach;

/// What is asked of one partition.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Of which topic.
    pub topic: Arc<Topic>,
    /// Which partition, from 0.
    pub partition: u32,
    /// The offset of the first record.
    pub offset: u64,
    /// Bytes, at most; one batch comes even if it is larger.
    pub bytes_max: usize,
    /// Of which leader the reader knows.
    pub leader_epoch: Option<i32>,
}

/// What a reader wants of all partitions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Which records it wants to see.
    pub isolation: Isolation,
    /// It waits until there are so many bytes; 0 for not at all.
    pub bytes_min: usize,
    /// Bytes, at most; one batch comes even if it is larger.
    pub bytes_max: usize,
}

/// What there is of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Whole batches in their order, each as it is stored: the first holds the offset that was asked
    /// for. They lie in memory that is shared with others: whoever keeps them for long copies them.
    pub batches: Vec<Bytes>,
    /// Up to where readers may see: everything before is durable, unless the topic asks for less.
    pub high_watermark: u64,
    /// Up to where every transaction is over.
    pub last_stable: u64,
    /// The first offset there is.
    pub log_start: u64,
    /// Transactions that were aborted and of which there is something in the batches: whose, and from
    /// which offset on. For whoever wants to see what is committed.
    pub aborted: Vec<(ProducerId, u64)>,
}

impl Fetched {
    /// Bytes of all batches.
    pub fn size(&self) -> usize {
        self.batches.iter().map(Bytes::len).sum()
    }
}

/// Bytes that are read before the batch that holds the offset, at most, on top of what is asked for.
const SKIPPED_SIZE: usize = 64 << 10;

/// How often a place is looked for whose records are gone when they are to be read.
const TRIES: usize = 8;

/// What was gathered of all partitions, as far as it was within reach.
pub(super) type Gathered = Option<Vec<Result<Fetched, FetchError>>>;

/// A partition as it stood when its batches were looked for.
struct Seen {
    fetched: Fetched,
    standing: Standing,
    /// Up to where the reader may see.
    visible: u64,
    /// From which record on to look for the offset, if there may be anything.
    record: Option<u64>,
}

impl Topics {
    /// Everything there is for these asks now; `None` if some of it is not within reach.
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
            match self.take(reach, &seen.standing, record, limit, &mut taking)? {
                Walked::OutOfReach => return Ok(None),
                // The beginning has gone meanwhile: it may be out of range now.
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

    /// Takes batches from a record on, or from memory if they are all there.
    fn take(
        &self,
        reach: Reach,
        standing: &Standing,
        record: u64,
        limit: ReadLimit,
        taking: &mut Taking,
    ) -> Result<Walked, Storage> {
        if standing.is_kept(taking.from) {
            look_through(standing, 0, |it| taking.take(it))?;
            return Ok(Walked::Done);
        }
        self.walk_shown(reach, standing, record, limit, |it| taking.take(it))
    }

    /// How a partition stands for a reader who has room for so many bytes.
    fn see(
        &self,
        slot: &Slot,
        ask: &Ask,
        room: usize,
        isolation: Isolation,
    ) -> Result<Seen, FetchError> {
        let mut live = slot.lock(&self.state.journal)?;
        live.check_epoch(ask.leader_epoch)?;
        let visible = live.partition.visible(isolation);
        let sought = live.partition.seek(ask.offset)?;
        let record = (ask.offset < visible).then(|| live.hints.find(ask.offset).unwrap_or(sought));
        if ask.offset == live.partition.end() {
            let next = live.next_number();
            live.hints.note(ask.offset, next);
        }
        Ok(Seen {
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

    /// What is known of the batches, now that it is known which they are. They end before `end`, with
    /// that record.
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
    /// Whether a reader knows of the leader there is.
    pub(super) fn check_epoch(&self, asked: Option<i32>) -> Result<(), FetchError> {
        let current = self.epoch();
        match asked {
            Some(asked) if asked < current => Err(FetchError::Fenced { asked, current }),
            Some(asked) if asked > current => Err(FetchError::Ahead { asked, current }),
            _ => Ok(()),
        }
    }
}

/// Batches from an offset on that fit.
struct Taking {
    batches: Vec<Bytes>,
    size: usize,
    size_max: usize,
    /// One batch comes even if it does not fit.
    is_first: bool,
    from: u64,
    visible: u64,
    /// The record of the last one, and the offset behind it.
    last: Option<(u64, u64)>,
}

impl Taking {
    fn take(&mut self, stored: Stored) -> Next {
        if stored.end() <= self.from {
            return Next::More;
        }
        if stored.offset() >= self.visible {
            return Next::Enough;
        }
        let size = self.size + stored.bytes.len();
        let must = self.is_first && self.batches.is_empty();
        if size > self.size_max && !must {
            return Next::Enough;
        }
        self.last = Some((stored.record, stored.end()));
        self.batches.push(stored.bytes);
        self.size = size;
        match self.size >= self.size_max {
            true => Next::Enough,
            false => Next::More,
        }
    }
}

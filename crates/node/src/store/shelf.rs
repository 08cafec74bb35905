//! Messages as they lie in their stream, read ahead: they go out nearly in the order in which they
//! were written.
//!
//! Whoever holds a mailbox waits for no disk. What is not in memory is missing at first; it is
//! fetched, with nothing locked, and then the mailbox goes on.

use std::sync::Arc;

use ::mailbox::record::{self, Moved};
use bytes::Bytes;
use journal::{ReadLimit, Record};

use super::Store;
use super::directory::Location;
use super::load::loaded;
use super::mailbox::{Fetched, Slot, State};
use super::restore::Reach;
use crate::counters::Counter;
use crate::handle::Inner;

/// What is read of a mailbox at a time.
const CHUNK: ReadLimit = ReadLimit {
    records: 256,
    bytes: 256 << 10,
};

/// Where the messages of one mailbox are looked up.
pub(super) struct Shelf<'a> {
    store: &'a Store,
    location: Location,
    fetched: &'a mut Fetched,
    /// From memory.
    records: Vec<Record>,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(store: &'a Store, location: Location, fetched: &'a mut Fetched) -> Self {
        Self {
            store,
            location,
            fetched,
            records: Vec::new(),
        }
    }

    /// The write at that offset, first or once more; `None` when it cannot be read, or not yet.
    pub(super) fn find(&mut self, offset: u64) -> Option<Lying> {
        let known = find(&self.fetched.records, offset).or_else(|| find(&self.records, offset));
        if let Some(record) = known {
            return Lying::new(record.clone());
        }
        match self
            .store
            .read_within(Reach::Memory, self.location, offset, CHUNK)
        {
            Ok(Some(read)) => self.records = read.records,
            Ok(None) => {
                self.fetched.missing = Some(offset);
                return None;
            }
            // Whoever looks at the mailbox is told why.
            Err(_) => return None,
        }
        Lying::new(find(&self.records, offset)?.clone())
    }

    /// Whether what was looked for is being fetched.
    pub(super) fn is_missing(&self) -> bool {
        self.fetched.missing.is_some()
    }
}

fn find(records: &[Record], offset: u64) -> Option<&Record> {
    let place = records.binary_search_by_key(&offset, |record| record.offset);
    records.get(place.ok()?)
}

impl Store {
    /// The write at that offset, by whoever may wait for the disk; `ahead` is what was read before.
    pub(super) fn look_up(
        &self,
        location: Location,
        offset: u64,
        ahead: &mut Vec<Record>,
    ) -> Option<Lying> {
        if find(ahead, offset).is_none() {
            let read = self.read_within(Reach::Disk, location, offset, CHUNK);
            *ahead = read.ok()??.records;
        }
        Lying::new(find(ahead, offset)?.clone())
    }

    /// Has what a mailbox misses fetched. The mailbox is not locked.
    pub(super) fn fetch(&self, inner: &Arc<Inner>, slot: &Arc<Slot>) {
        let Some((location, offset)) = loaded(slot.stage.lock()).and_then(|mut it| it.missing())
        else {
            return;
        };
        let work = {
            let (inner, slot) = (inner.clone(), slot.clone());
            move || {
                if let Some(store) = &inner.store {
                    store.take_fetched(&inner, &slot, location, offset);
                }
            }
        };
        if inner.offload(Box::new(work)).is_err()
            && let Some(mut state) = loaded(slot.stage.lock())
        {
            // The sweep tries again.
            state.fetched.is_under_way = false;
        }
    }

    fn take_fetched(&self, inner: &Arc<Inner>, slot: &Arc<Slot>, location: Location, offset: u64) {
        let read = self
            .journal
            .read(location.shard, location.stream, offset, CHUNK);
        let records = read.map(|read| read.records).unwrap_or_default();
        let is_there = records.first().is_some_and(|first| first.offset == offset);
        let Some(mut state) = loaded(slot.stage.lock()) else {
            return;
        };
        state.fetched.is_under_way = false;
        if !is_there {
            // The sweep tries again; whoever looks at the mailbox is told why.
            return inner.counters.count(Counter::Unreadable);
        }
        state.fetched.records = records.into_iter().map(on_its_own).collect();
        let mut dirty = Vec::new();
        self.hand_out(inner, slot, &mut state, &mut dirty);
        drop(state);
        self.finish(inner, slot, dirty);
    }
}

impl State {
    /// What is to be fetched now.
    fn missing(&mut self) -> Option<(Location, u64)> {
        if self.fetched.is_under_way {
            return None;
        }
        let missing = (self.location?, self.fetched.missing.take()?);
        self.fetched.is_under_way = true;
        Some(missing)
    }
}

/// A record that does not hold the block or page in which it was found.
fn on_its_own(record: Record) -> Record {
    Record {
        payload: Bytes::copy_from_slice(&record.payload),
        ..record
    }
}

/// A message as it lies in its stream.
pub(super) struct Lying {
    /// When it was written.
    pub(super) written_ms: u64,
    record: Record,
    /// Where in the record the write begins.
    begin: usize,
}

impl Lying {
    pub(super) fn new(record: Record) -> Option<Self> {
        let (written_ms, begin) = match record.tag {
            record::WRITE => (record.time_ms, 0),
            record::MOVED => {
                let moved = Moved::decode(&record.payload).ok()?;
                (moved.written_ms, Moved::HEAD_SIZE)
            }
            _ => return None,
        };
        Some(Self {
            written_ms,
            record,
            begin,
        })
    }

    /// The bytes of the write.
    pub(super) fn write(&self) -> &[u8] {
        &self.record.payload[self.begin..]
    }
}

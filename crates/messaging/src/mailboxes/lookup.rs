//! Lookups of messages in a mailbox's stream, with read-ahead, as messages are delivered nearly in
//! the order of writes.
//!
//! A lookup under the mailbox's lock never waits for the disk. A record that is not in memory is
//! reported as missing. It is read without locks, and then the mailbox continues.

use std::sync::Arc;

use bytes::Bytes;
use journal::{ReadLimit, Record};
use mailbox::record::{self, Moved};
use platform::Counter;
use store::{Location, Reach, Store};

use super::Mailboxes;
use super::slot::{Fetched, Slot, State};

/// Size of one read of a mailbox's stream.
const CHUNK: ReadLimit = ReadLimit {
    records: 256,
    bytes: 256 << 10,
};

/// A lookup of messages of one mailbox.
pub(super) struct WriteLookup<'a> {
    store: &'a Store,
    location: Location,
    fetched: &'a mut Fetched,
    /// Records read from memory.
    records: Vec<Record>,
}

impl<'a> WriteLookup<'a> {
    pub(super) fn new(store: &'a Store, location: Location, fetched: &'a mut Fetched) -> Self {
        Self {
            store,
            location,
            fetched,
            records: Vec::new(),
        }
    }

    /// Returns the write in the record at that offset, original or moved; `None` if it cannot be
    /// read, or not yet.
    pub(super) fn find(&mut self, offset: u64) -> Option<StoredWrite> {
        let known = find(&self.fetched.records, offset).or_else(|| find(&self.records, offset));
        if let Some(record) = known {
            return StoredWrite::new(record.clone());
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
            // Administrators of the mailbox get the error.
            Err(_) => return None,
        }
        StoredWrite::new(find(&self.records, offset)?.clone())
    }

    /// Returns whether a record was missing.
    pub(super) fn is_missing(&self) -> bool {
        self.fetched.missing.is_some()
    }
}

fn find(records: &[Record], offset: u64) -> Option<&Record> {
    let place = records.binary_search_by_key(&offset, |record| record.offset);
    records.get(place.ok()?)
}

impl Mailboxes {
    /// Returns the write at that offset, on a thread that may wait for the disk; `ahead` caches
    /// earlier reads.
    pub(super) fn look_up(
        &self,
        location: Location,
        offset: u64,
        ahead: &mut Vec<Record>,
    ) -> Option<StoredWrite> {
        if find(ahead, offset).is_none() {
            let read = self.store.read_within(Reach::Disk, location, offset, CHUNK);
            *ahead = read.ok()??.records;
        }
        StoredWrite::new(find(ahead, offset)?.clone())
    }

    /// Reads the missing record of a mailbox on another thread. The mailbox must not be locked.
    pub(super) fn fetch(self: &Arc<Self>, slot: &Arc<Slot>) {
        let Some((location, offset)) = slot.lock_loaded().and_then(|mut it| it.missing()) else {
            return;
        };
        let work = {
            let (mailboxes, slot) = (self.clone(), slot.clone());
            move || mailboxes.take_fetched(&slot, location, offset)
        };
        if self.platform.offload_work(Box::new(work)).is_err()
            && let Some(mut state) = slot.lock_loaded()
        {
            // The sweep tries again.
            state.fetched.is_under_way = false;
        }
    }

    fn take_fetched(self: &Arc<Self>, slot: &Arc<Slot>, location: Location, offset: u64) {
        let read = self
            .store
            .journal
            .read(location.shard, location.stream, offset, CHUNK);
        let records = read.map(|read| read.records).unwrap_or_default();
        let is_there = records.first().is_some_and(|first| first.offset == offset);
        let Some(mut state) = slot.lock_loaded() else {
            return;
        };
        state.fetched.is_under_way = false;
        if !is_there {
            // The sweep tries again; administrators of the mailbox get the error.
            return self.platform.counters.count(Counter::Unreadable);
        }
        state.fetched.records = records.into_iter().map(detached_copy).collect();
        let mut dirty = Vec::new();
        self.hand_out(slot, &mut state, &mut dirty);
        drop(state);
        self.finish(slot, dirty);
    }
}

impl State {
    /// Returns the record to read now, if there is one.
    fn missing(&mut self) -> Option<(Location, u64)> {
        if self.fetched.is_under_way {
            return None;
        }
        let missing = (self.location?, self.fetched.missing.take()?);
        self.fetched.is_under_way = true;
        Some(missing)
    }
}

/// Returns a copy of a record that does not keep its block or page in memory.
fn detached_copy(record: Record) -> Record {
    Record {
        payload: Bytes::copy_from_slice(&record.payload),
        ..record
    }
}

/// A message in its stream.
pub(super) struct StoredWrite {
    /// The time of the write.
    pub(super) written_ms: u64,
    record: Record,
    /// The position of the write in the record.
    begin: usize,
}

impl StoredWrite {
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

    /// Returns the bytes of the write.
    pub(super) fn write(&self) -> &[u8] {
        &self.record.payload[self.begin..]
    }
}

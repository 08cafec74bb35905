//! Reads the batches of a partition's stream in order.

use bytes::Bytes;
use journal::{Journal, LocatedRecord, Read, ReadError, ReadLimit, Record, StoredBytes};
use recordbatch::{Batch, Header, Malformed};
use topics::record;

use super::error::Storage;
use super::partition::{Live, Slot};
use super::places::Places;
use super::tail::TailBatch;
use crate::service::Topics;
use store::{Location, Reach};

/// A stored batch.
pub(super) struct Stored<B = Bytes> {
    /// Its record number.
    pub(super) record: u64,
    pub(super) header: Header,
    pub(super) bytes: B,
}

/// The bytes of a stored batch: in memory, or where they are stored.
pub(super) trait BatchBytes: From<Bytes> {
    /// A record as the journal returns it.
    type Record;

    fn read(
        reach: Reach,
        journal: &Journal,
        at: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read<Self::Record>>, ReadError>;

    /// Returns offset and tag of a record.
    fn place(record: &Self::Record) -> (u64, u8);

    /// Returns the batch in a record.
    fn open(record: Self::Record) -> Result<(Header, Self), Malformed>;
}

impl BatchBytes for Bytes {
    type Record = Record;

    fn read(
        reach: Reach,
        journal: &Journal,
        Location { shard, stream }: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read>, ReadError> {
        journal.read_within(reach, shard, stream, from, limit)
    }

    fn place(record: &Record) -> (u64, u8) {
        (record.offset, record.tag)
    }

    fn open(record: Record) -> Result<(Header, Self), Malformed> {
        let (batch, _) = Batch::split(&record.payload)?;
        Ok((*batch.header(), record.payload))
    }
}

impl BatchBytes for StoredBytes {
    type Record = LocatedRecord;

    fn read(
        reach: Reach,
        journal: &Journal,
        Location { shard, stream }: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read<LocatedRecord>>, ReadError> {
        journal.locate(shard, stream, from, limit, reach)
    }

    fn place(record: &LocatedRecord) -> (u64, u8) {
        (record.offset, record.tag)
    }

    fn open(record: LocatedRecord) -> Result<(Header, Self), Malformed> {
        let size = record.payload.size();
        let head = &record.head[..size.min(record.head.len())];
        Ok((Header::of_first(head, size)?, record.payload))
    }
}

impl<B> Stored<B> {
    /// Returns its first offset.
    pub(super) fn offset(&self) -> u64 {
        self.header.base_offset.unsigned_abs()
    }

    /// Returns the offset after its last record.
    pub(super) fn end(&self) -> u64 {
        self.header.last_offset().unsigned_abs() + 1
    }
}

/// The reason why a walk ended.
pub(super) enum Walked {
    /// There are no more batches, or the visitor stopped.
    Done,
    /// The next batch is out of reach.
    OutOfReach,
    /// The start of the walk was trimmed.
    Trimmed,
}

/// The visitor's decision after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    More,
    Enough,
}

/// A snapshot of a partition: its durable records, then the visible records that are not durable
/// yet.
pub(super) struct SlotSnapshot {
    places: Places,
    kept: Vec<TailBatch>,
}

impl Live {
    /// Takes a snapshot for a read of `size` bytes from an offset on.
    pub(super) fn standing(&self, slot: &Slot, offset: u64, size: usize) -> SlotSnapshot {
        SlotSnapshot {
            places: self.places(slot),
            kept: self.tail.batches(offset, size),
        }
    }
}

impl SlotSnapshot {
    /// Returns whether everything from an offset on is in memory.
    pub(super) fn is_kept(&self, offset: u64) -> bool {
        let first = self.kept.first();
        first.is_some_and(|first| first.offset <= offset)
    }
}

impl Topics {
    /// Visits the durable batches from a record on, read with `limit`, and then those in memory.
    pub(super) fn walk_shown<B: BatchBytes>(
        &self,
        reach: Reach,
        standing: &SlotSnapshot,
        from: u64,
        limit: ReadLimit,
        mut look: impl FnMut(Stored<B>) -> Next,
    ) -> Result<Walked, Storage> {
        let (mut behind, mut next) = (from, Next::More);
        let walked = self.walk(reach, standing.places, from, limit, |stored| {
            behind = stored.record + 1;
            next = look(stored);
            next
        })?;
        if matches!(walked, Walked::Done) && next == Next::More {
            look_through(standing, behind, look)?;
        }
        Ok(walked)
    }

    /// Visits the durable batches from a record on, read with `limit`.
    pub(super) fn walk<B: BatchBytes>(
        &self,
        reach: Reach,
        places: Places,
        mut from: u64,
        limit: ReadLimit,
        mut look: impl FnMut(Stored<B>) -> Next,
    ) -> Result<Walked, Storage> {
        loop {
            let run = places.run(from);
            let at = Location {
                stream: run.stream,
                ..places.at
            };
            let read = match B::read(reach, &self.state.journal, at, run.from, limit) {
                Err(ReadError::Trimmed { .. }) => return Ok(Walked::Trimmed),
                Err(error) => return Err(Storage::read(&error)),
                Ok(None) => return Ok(Walked::OutOfReach),
                Ok(Some(read)) => read,
            };
            let Some(last) = read.records.last() else {
                return Ok(Walked::Done);
            };
            from = run.base + B::place(last).0.min(run.until - 1) + 1;
            for it in read.records {
                let (offset, tag) = B::place(&it);
                if offset >= run.until || tag != record::BATCH {
                    continue;
                }
                let (header, bytes) = B::open(it).map_err(Storage::unreadable)?;
                let stored = Stored {
                    record: run.base + offset,
                    header,
                    bytes,
                };
                if look(stored) == Next::Enough {
                    return Ok(Walked::Done);
                }
            }
        }
    }
}

/// Visits the batches in memory from a record on.
pub(super) fn look_through<B: From<Bytes>>(
    standing: &SlotSnapshot,
    from: u64,
    mut look: impl FnMut(Stored<B>) -> Next,
) -> Result<(), Storage> {
    for kept in standing.kept.iter().filter(|it| it.record >= from) {
        let (batch, _) = Batch::split(&kept.bytes).map_err(Storage::unreadable)?;
        let stored = Stored {
            record: kept.record,
            header: *batch.header(),
            bytes: kept.bytes.clone().into(),
        };
        if look(stored) == Next::Enough {
            break;
        }
    }
    Ok(())
}

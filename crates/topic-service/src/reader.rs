//! Reads the batches of a partition's stream in order.

use bytes::Bytes;
use journal::{ReadError, ReadLimit};
use recordbatch::{Batch, Header};
use topics::record;

use super::error::Storage;
use super::partition::{Live, Slot};
use super::places::Places;
use super::tail::TailBatch;
use crate::service::Topics;
use store::{Location, Reach};

/// A stored batch.
pub(super) struct Stored {
    /// Its record number.
    pub(super) record: u64,
    pub(super) header: Header,
    pub(super) bytes: Bytes,
}

impl Stored {
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
    pub(super) fn walk_shown(
        &self,
        reach: Reach,
        standing: &SlotSnapshot,
        from: u64,
        limit: ReadLimit,
        mut look: impl FnMut(Stored) -> Next,
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
    pub(super) fn walk(
        &self,
        reach: Reach,
        places: Places,
        mut from: u64,
        limit: ReadLimit,
        mut look: impl FnMut(Stored) -> Next,
    ) -> Result<Walked, Storage> {
        loop {
            let run = places.run(from);
            let at = Location {
                stream: run.stream,
                ..places.at
            };
            let read = match reach.read(&self.state.journal, at, run.from, limit) {
                Err(ReadError::Trimmed { .. }) => return Ok(Walked::Trimmed),
                Err(error) => return Err(Storage::read(&error)),
                Ok(None) => return Ok(Walked::OutOfReach),
                Ok(Some(read)) => read,
            };
            let Some(last) = read.records.last() else {
                return Ok(Walked::Done);
            };
            from = run.base + last.offset.min(run.until - 1) + 1;
            let in_run = read.records.into_iter().filter(|it| it.offset < run.until);
            for it in in_run.filter(|it| it.tag == record::BATCH) {
                let (batch, _) = Batch::split(&it.payload).map_err(Storage::unreadable)?;
                let stored = Stored {
                    record: run.base + it.offset,
                    header: *batch.header(),
                    bytes: it.payload,
                };
                if look(stored) == Next::Enough {
                    return Ok(Walked::Done);
                }
            }
        }
    }
}

/// Visits the batches in memory from a record on.
pub(super) fn look_through(
    standing: &SlotSnapshot,
    from: u64,
    mut look: impl FnMut(Stored) -> Next,
) -> Result<(), Storage> {
    for kept in standing.kept.iter().filter(|it| it.record >= from) {
        let (batch, _) = Batch::split(&kept.bytes).map_err(Storage::unreadable)?;
        let stored = Stored {
            record: kept.record,
            header: *batch.header(),
            bytes: kept.bytes.clone(),
        };
        if look(stored) == Next::Enough {
            break;
        }
    }
    Ok(())
}

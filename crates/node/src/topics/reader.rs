//! Walking through a partition's stream.

use ::topics::record;
use bytes::Bytes;
use journal::{ReadError, ReadLimit};
use recordbatch::{Batch, Header};

use super::Topics;
use super::error::Storage;
use super::places::Places;
use crate::store::{Location, Reach};

/// A batch as it is stored.
pub(super) struct Stored {
    /// Its place in the stream.
    pub(super) record: u64,
    pub(super) header: Header,
    pub(super) bytes: Bytes,
}

impl Stored {
    /// Its first offset.
    pub(super) fn offset(&self) -> u64 {
        self.header.base_offset.unsigned_abs()
    }

    /// Behind its last offset.
    pub(super) fn end(&self) -> u64 {
        self.header.last_offset().unsigned_abs() + 1
    }
}

/// How a walk ends.
pub(super) enum Walked {
    /// There is no more, or whoever looked has seen enough.
    Done,
    /// What comes next is not within reach.
    OutOfReach,
    /// Where it was to begin nothing is any more.
    Trimmed,
}

/// Whether whoever looks wants to see more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    More,
    Enough,
}

impl Topics {
    /// Shows the batches of a partition that are durable, from that record on, `limit` at a time.
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

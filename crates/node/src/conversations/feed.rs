//! Everything that happens in conversations, in order, for whoever keeps it somewhere else.
//!
//! An event partition says what happened where; what it refers to is read along. Whoever is fed
//! remembers how far it has come and asks for more from there, as often as it likes: nothing is held
//! for it and nobody waits for it. Only what is durable is handed out, so what was handed out is
//! never taken back. A message that is not kept any more is passed over.
//!
//! It does not know who is fed.

mod batch;
mod keep;
mod read_back;
#[cfg(test)]
mod tests;
mod waiting;

use ::journal::{ReadLimit, ShardId, StreamId};
use bytes::Bytes;

pub use batch::{Batch, BatchLimit, Happened, Row};
pub use keep::Keep;
pub(super) use read_back::taken;
pub use waiting::Waiting;

use super::Conversations;
use crate::store::{Kind, Location};

/// A part of the events of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, for the life of the journal.
    pub number: u64,
    /// `org/namespace/N`.
    pub name: String,
    shard: ShardId,
}

/// The partitions there are, as far as they were looked for.
#[derive(Clone, Debug, Default)]
pub struct Partitions {
    /// In the order in which they were made.
    pub found: Vec<Partition>,
    /// Streams of the directory that were looked at.
    looked: u64,
}

/// How far a partition reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The first event that is kept.
    pub start: u64,
    /// Where the durable ones end.
    pub end: u64,
}

/// How far whoever is fed is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Events it has not got.
    pub events: u64,
    /// When the oldest of them happened, in milliseconds since 1970-01-01 UTC; 0 for none.
    pub oldest_ms: u64,
}

impl Conversations<'_> {
    /// The journal that everything is in; whoever is fed by several tells them apart by it.
    pub fn journal_id(&self) -> u64 {
        self.store.journal.id()
    }

    /// One above the largest number that a conversation can have now.
    pub fn numbers_end(&self) -> u64 {
        self.store.stream_count() as u64 + 1
    }

    /// Looks for partitions that were made since.
    pub fn find_partitions(&self, partitions: &mut Partitions) {
        while let Some((kind, name, location)) = self.store.named(StreamId(partitions.looked + 1)) {
            let Location { shard, stream } = location;
            if kind == Kind::Events {
                // Nothing that is not durable is shown, a name as little as what it names.
                if self.store.creation(stream).is_some() {
                    return;
                }
                let number = stream.0;
                partitions.found.push(Partition {
                    number,
                    name,
                    shard,
                });
            }
            partitions.looked += 1;
        }
    }

    /// How far a partition reaches.
    pub fn reach(&self, partition: &Partition) -> Reach {
        let stream = StreamId(partition.number);
        let state = self.store.journal.stream(partition.shard, stream);
        state.map_or(Reach { start: 0, end: 0 }, |it| Reach {
            start: it.start,
            end: it.next_durable,
        })
    }

    /// An event in few bytes, by which whoever was fed up to behind it knows it again: a journal
    /// that was brought back from a copy goes on with others. `None` if it is not kept.
    pub fn proof(&self, partition: &Partition, offset: u64) -> Option<[u8; 24]> {
        let (payload, time_ms) = self.event(partition, offset)?;
        let mut proof = [0; 24];
        proof[..8].copy_from_slice(&time_ms.to_le_bytes());
        proof[8..].copy_from_slice(payload.get(..16)?);
        Some(proof)
    }

    /// When an event happened, in milliseconds since 1970-01-01 UTC; `None` if it is not kept.
    pub fn happened_ms(&self, partition: &Partition, offset: u64) -> Option<u64> {
        self.event(partition, offset).map(|(_, time_ms)| time_ms)
    }

    /// How far whoever has come so far is behind, over all partitions.
    pub fn lag<'p>(&self, marks: impl Iterator<Item = (&'p Partition, u64)>) -> Lag {
        let mut lag = Lag::default();
        for (partition, next) in marks {
            let Reach { end, .. } = self.reach(partition);
            if next >= end {
                continue;
            }
            lag.events += end - next;
            if let Some((_, time_ms)) = self.event(partition, next)
                && (lag.oldest_ms == 0 || time_ms < lag.oldest_ms)
            {
                lag.oldest_ms = time_ms;
            }
        }
        lag
    }

    fn event(&self, partition: &Partition, offset: u64) -> Option<(Bytes, u64)> {
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let stream = StreamId(partition.number);
        let read = self
            .store
            .journal
            .read(partition.shard, stream, offset, one);
        let record = read.ok()?.records.into_iter().next()?;
        (record.offset == offset).then_some((record.payload, record.time_ms))
    }
}

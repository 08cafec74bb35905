//! A feed of all events of conversations, in order, for consumers such as archives.
//!
//! An event partition lists the events; the records they refer to are read along. A consumer
//! remembers its own position and asks for more from there: the node holds no state for it and
//! never waits for it. Only durable events are returned, so they are never taken back. Messages
//! that were trimmed or erased are skipped.
//!
//! The feed does not know its consumers.

mod batch;
mod keep;
mod read_back;
#[cfg(test)]
mod tests;
mod waiting;

use ::journal::{ReadLimit, ShardId, StreamId};
use bytes::Bytes;

pub use batch::{Batch, BatchLimit, EventContent, Row};
pub use keep::ArchivedRetention;
pub(super) use read_back::taken;
use store::{Kind, Location, NameCursor};
pub use waiting::EventWait;

use super::Conversations;

/// An event partition: the events of a namespace in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, constant for the life of the journal.
    pub number: u64,
    /// `org/namespace/N`.
    pub name: String,
    /// Created in format 1 of the directory: the numbers of such partitions rise in the order of
    /// their creation.
    pub is_carried_over: bool,
    shard: ShardId,
}

/// The event partitions found so far.
#[derive(Clone, Debug, Default)]
pub struct Partitions {
    /// The partitions, in the order in which they were found.
    pub found: Vec<Partition>,
    /// The part of the directory that was searched.
    searched: NameCursor,
}

/// The extent of an event partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The first available event.
    pub start: u64,
    /// The end of the durable events.
    pub end: u64,
}

/// The lag of a feed's consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Number of events that it has not received.
    pub events: u64,
    /// Time of the oldest of them, in milliseconds since 1970-01-01 UTC; 0 for none.
    pub oldest_ms: u64,
}

impl Conversations {
    /// Returns the id of the journal, by which a consumer distinguishes several nodes.
    pub fn journal_id(&self) -> u64 {
        self.store.journal.id()
    }

    /// Returns one more than the highest number of any conversation.
    pub fn numbers_end(&self) -> u64 {
        self.store.numbers_end()
    }

    /// Finds partitions that were created since the last call, those of format 1 first, in the order
    /// of their creation.
    pub fn find_partitions(&self, partitions: &mut Partitions) {
        let Partitions { found, searched } = partitions;
        let known = found.len();
        self.store.read_names(searched, |kind, name, location| {
            if kind == Kind::Events {
                found.push(Partition {
                    number: location.stream.0,
                    name: name.to_owned(),
                    is_carried_over: false,
                    shard: location.shard,
                });
            }
        });
        let new = &mut found[known..];
        for partition in new.iter_mut() {
            partition.is_carried_over = self.store.is_carried_over(StreamId(partition.number));
        }
        new.sort_unstable_by_key(|it| it.number);
    }

    /// Returns the time at which a partition was created, in milliseconds since 1970-01-01 UTC;
    /// `None` if it cannot be read. May wait for the disk.
    pub fn created_ms(&self, partition: &Partition) -> Option<u64> {
        let (shard, stream) = (partition.shard, StreamId(partition.number));
        self.store.created_ms(Location { shard, stream }).ok()?
    }

    /// Returns the extent of a partition.
    pub fn reach(&self, partition: &Partition) -> Reach {
        let stream = StreamId(partition.number);
        let state = self.store.journal.stream(partition.shard, stream);
        state.map_or(Reach { start: 0, end: 0 }, |it| Reach {
            start: it.start,
            end: it.next_durable,
        })
    }

    /// Returns a fingerprint of an event, by which a consumer verifies its position: a journal
    /// restored from a backup continues with other events. `None` if the event is not available.
    pub fn proof(&self, partition: &Partition, offset: u64) -> Option<[u8; 24]> {
        let (payload, time_ms) = self.event(partition, offset)?;
        let mut proof = [0; 24];
        proof[..8].copy_from_slice(&time_ms.to_le_bytes());
        proof[8..].copy_from_slice(payload.get(..16)?);
        Some(proof)
    }

    /// Returns the time of an event, in milliseconds since 1970-01-01 UTC; `None` if it is not
    /// available.
    pub fn happened_ms(&self, partition: &Partition, offset: u64) -> Option<u64> {
        self.event(partition, offset).map(|(_, time_ms)| time_ms)
    }

    /// Returns the lag of a consumer with these positions, over all partitions.
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

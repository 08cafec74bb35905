//! The event partitions of a topic, and the port through which their events are read.

use std::ops::Range;

use parking_lot::RwLock;

use super::error::UnknownPartition;

/// An event partition: the events of a namespace in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPartition {
    /// Its number, constant for the life of the journal.
    pub number: u64,
    /// The second half of the id of the topic that begins with this partition, constant for the life
    /// of the journal.
    pub topic_number: u64,
    /// `org/namespace/N`, where `N` is the number of the shard.
    pub name: String,
}

/// An event as a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord<'a> {
    /// The offset of the event.
    pub offset: u64,
    /// The time of the event, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The name of its conversation: `org/namespace/x`.
    pub key: &'a str,
    /// The encoded event.
    pub value: &'a [u8],
}

/// Limits of one read of events; the first event is returned even if it is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimit {
    /// Maximum number of events.
    pub rows: usize,
    /// Maximum bytes of the messages that they refer to.
    pub bytes: usize,
}

/// The events of conversations, which are topics for readers.
pub trait EventFeed: Send + Sync {
    /// Returns the partitions that were found after the first `known` ones, in order.
    fn partitions_after(&self, known: usize) -> Vec<EventPartition>;

    /// Returns a key by which partitions are sorted by age, the oldest first. May wait for the disk.
    fn age(&self, partition: &EventPartition) -> (u64, u64);

    /// Returns the first available offset of a partition, and the end of its durable events.
    fn extent(&self, partition: &EventPartition) -> Range<u64>;

    /// Passes the events from an offset on to `take`, by offset. Returns the offset after the last
    /// one that was read, or the reason why the events cannot be read. May wait for the disk.
    fn read(
        &self,
        partition: &EventPartition,
        from: u64,
        limit: EventLimit,
        take: &mut dyn FnMut(EventRecord<'_>),
    ) -> Result<u64, String>;

    /// Returns the time of an event, in milliseconds since 1970-01-01 UTC; `None` if the event is
    /// not available. May wait for the disk.
    fn time_ms(&self, partition: &EventPartition, offset: u64) -> Option<u64>;
}

/// The event partitions of one topic.
pub(super) struct Events {
    /// `org/namespace`
    pub(super) namespace: String,
    /// Indexed by shard; `None` for a shard without events.
    pub(super) partitions: RwLock<Vec<Option<EventPartition>>>,
}

impl Events {
    /// Returns a partition; `None` inside if it has no events.
    pub(super) fn partition(
        &self,
        number: u32,
    ) -> Result<Option<EventPartition>, UnknownPartition> {
        let partitions = self.partitions.read();
        let place = usize::try_from(number).ok();
        let place = place.and_then(|place| partitions.get(place));
        place.cloned().ok_or(UnknownPartition)
    }
}

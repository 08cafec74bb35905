//! What the views are made from, as they see it.

use journal::{ReadError, ShardId};

/// A part of the events of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// Its stream.
    pub(super) stream: u64,
    pub(super) shard: ShardId,
}

/// How far a partition reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// The first event that is kept.
    pub(super) start: u64,
    /// Where the durable ones end.
    pub(super) end: u64,
}

/// What an event says has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changed {
    /// There are more messages.
    Messages,
    /// Anything.
    State,
}

/// A conversation besides its messages, as it stands durably.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// `org/namespace`.
    pub(super) namespace: String,
    /// Records in the stream of messages before message 1.
    pub(super) base: u64,
    /// When it was created, in milliseconds since 1970-01-01 UTC; 0 when that is the time of its
    /// first message.
    pub(super) created_ms: u64,
    /// It is erased that long after its activity; 0 for never.
    pub(super) ttl_ms: u64,
    pub(super) is_archived: bool,
    /// The webhook that answers it, empty for none.
    pub(super) agent: String,
    /// What its metadata has under which key.
    pub(super) labels: Vec<(String, String)>,
    /// Who takes part because its owner says so.
    pub(super) participants: Vec<String>,
    /// How far participants have read.
    pub(super) cursors: Vec<(String, u64)>,
}

/// A message, as far as the views look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub(super) seq: u64,
    pub(super) at_ms: u64,
    /// Who wrote it, empty for nobody in particular.
    pub(super) from: &'a str,
}

/// What the views are made from. What it says is durable.
pub(super) trait Source {
    /// The partitions there are but the first `known` of them; their order does not change.
    fn partitions(&self, known: usize) -> Vec<Partition>;

    fn reach(&self, partition: Partition) -> Reach;

    /// Events from an offset on: which conversation has changed, and how. At most so many; the next
    /// offset is returned. What is about conversations whose creation is not durable waits, and so
    /// does everything behind it.
    fn events(
        &self,
        partition: Partition,
        from: u64,
        limit: usize,
        event: &mut dyn FnMut(u64, Changed),
    ) -> Result<u64, ReadError>;

    /// One more than the largest number that a stream has.
    fn numbers_end(&self) -> u64;

    /// Whether it is durable what the stream of that number is.
    fn is_settled(&self, number: u64) -> bool;

    /// A conversation; `None` when there is none of that number to be seen.
    fn known(&self, number: u64) -> Result<Option<Known>, ReadError>;

    /// The first message that is kept and the newest, of a conversation with that base.
    fn span(&self, number: u64, base: u64) -> (u64, u64);

    /// The messages in a range, as far as they are kept.
    fn messages(
        &self,
        number: u64,
        base: u64,
        seqs: std::ops::RangeInclusive<u64>,
        said: &mut dyn FnMut(Said<'_>),
    ) -> Result<(), ReadError>;
}

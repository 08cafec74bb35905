//! The interface through which the views read their source data.

use std::ops::RangeInclusive;

use conversations::Retracted;
use journal::{ReadError, ShardId};

/// A partition of a namespace's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// The number of its stream.
    pub(super) stream: u64,
    pub(super) shard: ShardId,
}

/// The range of events in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventRange {
    /// The first retained event.
    pub(super) start: u64,
    /// The end of the durable events.
    pub(super) end: u64,
}

/// The part of a conversation that an event reports as changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changed {
    /// Messages were appended.
    Messages,
    /// Anything may have changed.
    State,
}

/// A part of the events that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventItem<'a> {
    /// An event.
    Event {
        /// The conversation.
        number: u64,
        changed: Changed,
        /// The offset of the record that the event refers to, in the stream of messages or of state.
        offset: u64,
    },
    /// The message of an event, if it was read along with the event. It may be passed twice, and
    /// before or after its event; the messages of a conversation are passed in order otherwise.
    Message {
        /// The conversation.
        number: u64,
        message: StoredMessage<'a>,
    },
}

/// A message as it is stored: its number follows from its offset and the conversation's base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredMessage<'a> {
    pub(super) offset: u64,
    pub(super) at_ms: u64,
    /// The author; empty if not named, or if it is a retraction.
    pub(super) from: &'a str,
}

/// The durable state of a conversation apart from its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConversationFacts {
    /// `org/namespace`.
    pub(super) namespace: String,
    /// Number of records in the stream of messages before message 1.
    pub(super) base: u64,
    /// The time of creation, in milliseconds since 1970-01-01 UTC; 0 if the first message created
    /// the conversation.
    pub(super) created_ms: u64,
    /// Time after the last activity until the conversation is erased, in milliseconds; 0 for never.
    pub(super) ttl_ms: u64,
    pub(super) is_archived: bool,
    /// The webhook that answers the conversation; empty for none.
    pub(super) agent: String,
    /// The labels in its metadata, as keys and values.
    pub(super) labels: Vec<(String, String)>,
    /// The participants named by the owner.
    pub(super) participants: Vec<String>,
    /// The read marks of participants.
    pub(super) cursors: Vec<(String, u64)>,
    /// The numbers whose messages were retracted.
    pub(super) retracted: Retracted,
}

/// The fields of a message that the views use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageFacts<'a> {
    pub(super) seq: u64,
    pub(super) at_ms: u64,
    /// The author; empty if not named, or if it is a retraction.
    pub(super) from: &'a str,
}

/// A range of messages of a conversation with that base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedMessages {
    /// The number of its stream.
    pub(super) number: u64,
    /// Number of records in the stream before message 1.
    pub(super) base: u64,
    /// The numbers of the messages.
    pub(super) seqs: RangeInclusive<u64>,
}

/// The source data of the views. It returns durable data only.
pub(super) trait Source {
    /// Returns all partitions after the first `known` ones; their order never changes.
    fn partitions(&self, known: usize) -> Vec<Partition>;

    fn reach(&self, partition: Partition) -> EventRange;

    /// Passes up to `limit` events from an offset on to the callback, with the messages that were
    /// read along, and returns the next offset.
    fn events(
        &self,
        partition: Partition,
        from: u64,
        limit: usize,
        found: &mut dyn FnMut(EventItem<'_>),
    ) -> Result<u64, ReadError>;

    /// Returns one more than the largest stream number. Not every lower number is in use.
    fn numbers_end(&self) -> u64;

    /// Returns the state of a conversation; `None` if no conversation with that number is visible.
    fn conversation_facts(&self, number: u64) -> Result<Option<ConversationFacts>, ReadError>;

    /// Returns the first retained message and the newest one, for a conversation with that base.
    fn span(&self, number: u64, base: u64) -> (u64, u64);

    /// Passes the retained messages of a range to the callback.
    fn messages(
        &self,
        number: u64,
        base: u64,
        seqs: RangeInclusive<u64>,
        said: &mut dyn FnMut(MessageFacts<'_>),
    ) -> Result<(), ReadError>;

    /// Passes the retained messages of ranges of different conversations to the callback, with the
    /// number of the conversation, in order within each. Unreadable messages are left out.
    fn messages_of_many(
        &self,
        wanted: &[WantedMessages],
        said: &mut dyn FnMut(u64, MessageFacts<'_>),
    ) {
        for WantedMessages { number, base, seqs } in wanted {
            let mut said = |facts: MessageFacts<'_>| said(*number, facts);
            let _ = self.messages(*number, *base, seqs.clone(), &mut said);
        }
    }
}

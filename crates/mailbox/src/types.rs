//! Requests and results of the mailbox engine.

use crate::ids::WriteId;

/// Limits of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Unacknowledged messages.
    pub messages_max: usize,
    /// Their bytes, as counted by the shell.
    pub bytes_max: u64,
    /// Messages in delivery at the same time.
    pub in_flight_max: usize,
    /// Deliveries after which an unacknowledged message becomes a dead letter; 0 for no limit.
    pub deliveries_max: u32,
}

/// A message that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMessage<'a> {
    /// Offset of the message, above every earlier one.
    pub offset: u64,
    /// Id given by the writer.
    pub id: Option<WriteId>,
    /// Name of the sender.
    pub sender: &'a str,
    /// Size in bytes that counts against the limit.
    pub size: u32,
    /// Expiry time in milliseconds since 1970-01-01 UTC.
    pub expires_ms: u64,
}

/// An accepted write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Append it, then call [`Mailbox::written`](crate::Mailbox::written).
    New,
    /// The write is a retry; its original was accepted before.
    Duplicate {
        /// The offset of the original.
        offset: u64,
    },
}

/// A refused write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The mailbox has too many messages.
    #[error("the mailbox is full: {messages} unacknowledged messages (limit mailbox.messages_max)")]
    Messages {
        /// Number of unacknowledged messages, which is the limit.
        messages: usize,
    },
    /// The mailbox has too many bytes.
    #[error("the mailbox is full: {bytes} + {size} bytes (limit {bytes_max}, mailbox.size_max)")]
    Bytes {
        /// Bytes of the write.
        size: u32,
        /// Bytes in the mailbox.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
}

/// A message to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a, S> {
    /// Offset of the message.
    pub offset: u64,
    /// Offset of the record with its bytes: the newest one.
    pub record: u64,
    /// Number of this delivery, from 1.
    pub delivery: u32,
    /// The eligible subscribers.
    pub place: Eligibility<'a, S>,
}

/// Subscribers that are eligible for a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligibility<'a, S> {
    /// Any subscriber.
    Any,
    /// Only this one, because it has an unanswered earlier message of the same sender.
    Only(&'a S),
    /// Another one, if possible, because this one has not answered.
    Other(&'a S),
}

/// Result of an [`Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<S> {
    /// Delivered to this subscriber, which will answer, fail or disconnect.
    Handed(S),
    /// The only eligible subscriber has no room.
    Full,
    /// There is no subscriber with room, or the message cannot be read now.
    NoSubscriber,
}

/// Time of the next delivery of an unacknowledged message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Immediately, because the subscriber disconnected or did not answer.
    Now,
    /// After a growing pause, because the subscriber refused it.
    Later,
    /// After this pause, which the subscriber asked for.
    After {
        /// Length of the pause in milliseconds.
        pause_ms: u64,
    },
}

/// A message in the mailbox, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending<'a> {
    /// Offset of the message.
    pub offset: u64,
    /// Offset of the record with its bytes.
    pub record: u64,
    /// Name of the sender.
    pub sender: &'a str,
    /// Number of deliveries.
    pub deliveries: u32,
    /// Expiry time in milliseconds since 1970-01-01 UTC.
    pub expires_ms: u64,
    /// State of the message.
    pub state: State,
}

/// State of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not on disk yet.
    Unsynced,
    /// Waiting for a subscriber with room.
    Waiting,
    /// Delivered and unanswered.
    Unanswered,
    /// Waiting for the end of a pause.
    Paused {
        /// End of the pause in milliseconds since 1970-01-01 UTC.
        until_ms: u64,
    },
    /// A dead letter, until it is acknowledged by hand or revived.
    Dead(Cause),
}

/// Result of the last delivery of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The subscriber refused it.
    Refused,
    /// The subscriber disconnected or did not answer.
    Unanswered,
}

/// A message to rewrite, because it prevents the trimming of later records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Straggler {
    /// Offset of the message.
    pub offset: u64,
    /// Offset of the record with its bytes now.
    pub record: u64,
    /// State to store with it.
    pub state: MessageState,
}

/// Durable state of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageState {
    /// Number of deliveries.
    pub deliveries: u32,
    /// Number of deliveries before it was last revived.
    pub forgiven: u32,
    /// Result of its last delivery, if it is a dead letter.
    pub dead: Option<Cause>,
}

//! The port to a client: all output that a listener must be able to send.

use std::sync::Arc;

use model::{ErrorCode, Name};
use routing::Ticket;

use crate::conversations;

/// The parts of a message; the node reads only the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// Remaining time in milliseconds.
    pub deadline_ms: Option<u32>,
    /// Opaque metadata entries.
    pub metadata: &'a [u8],
    /// Opaque bytes.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// Returns the size that counts towards windows, in bytes.
    pub fn size(&self) -> u64 {
        (self.metadata.len() + self.body.len()) as u64
    }
}

/// The delivery of a message from a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The offset in the mailbox.
    pub offset: u64,
    /// The number of the delivery, from 1.
    pub delivery: u32,
    /// The time of the write, in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
}

/// A record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRecord<'a> {
    /// The offset.
    pub offset: u64,
    /// The time of the append, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// Opaque bytes.
    pub bytes: &'a [u8],
}

/// A range of records of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extract<'a> {
    /// The oldest retained offset.
    pub start: u64,
    /// The offset after the newest durable record.
    pub next: u64,
    /// The records, in order.
    pub records: &'a [StoredRecord<'a>],
}

/// The failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The error code.
    pub code: ErrorCode,
    /// True if a responder was sent the request.
    pub sent: bool,
    /// Milliseconds after which a retry is useful; 0 if unknown.
    pub retry_after_ms: u32,
    /// The text for users.
    pub message: &'a str,
    /// Details for programs, from a handler.
    pub details: &'a [u8],
}

impl<'a> Failure<'a> {
    /// Returns a failure before a responder was sent the request.
    pub const fn new(code: ErrorCode, message: &'a str) -> Self {
        Self {
            code,
            sent: false,
            retry_after_ms: 0,
            message,
            details: &[],
        }
    }

    /// Returns the failure for a request that a responder was sent.
    pub const fn after_sending(self) -> Self {
        Self { sent: true, ..self }
    }
}

/// All output to a client. A *tag* is the client's number for its request; a *ticket* is the node's
/// number for a request to the client.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing<'a> {
    /// A call for one of the client's subscriptions.
    Request {
        /// The subscription.
        to: &'a Name,
        /// The method, empty for a plain message.
        method: &'a Arc<str>,
        /// The ticket, which is returned with the reply.
        ticket: Ticket,
        /// True if the caller accepts a stream of items.
        stream: bool,
        /// The caller, if the subscription requests it.
        source: Option<&'a str>,
        /// The message.
        message: Message<'a>,
    },
    /// A message from the mailbox of one of the client's subscriptions; a reply acknowledges it.
    Delivery {
        /// The subscription.
        to: &'a Name,
        /// The method, empty for a plain message.
        method: &'a Arc<str>,
        /// The ticket, which is returned with the answer.
        ticket: Ticket,
        /// The sender, if the subscription requests it.
        source: Option<&'a str>,
        /// The delivery.
        delivery: Delivery,
        /// The message.
        message: Message<'a>,
    },
    /// A one-way message for one of the client's subscriptions.
    Send {
        /// The subscription.
        to: &'a Name,
        /// The method, empty for a plain message.
        method: &'a Arc<str>,
        /// The sender, if the subscription requests it.
        source: Option<&'a str>,
        /// The message.
        message: Message<'a>,
    },
    /// The answer to a call, or one item of it.
    Reply {
        /// The caller's tag.
        tag: Ticket,
        /// True if more items follow.
        more: bool,
        /// The message.
        message: Message<'a>,
    },
    /// The failure of a request.
    Failure {
        /// The tag; `None` if the whole connection failed.
        tag: Option<Ticket>,
        /// The failure.
        failure: Failure<'a>,
    },
    /// A subscription, or its end, was accepted.
    Subscribed {
        /// The tag.
        tag: Ticket,
        /// The full name.
        name: &'a Name,
    },
    /// A write to memory was accepted.
    Copies {
        /// The tag.
        tag: Ticket,
        /// Number of subscribers it was enqueued for.
        copies: u32,
    },
    /// A write is on disk.
    Stored {
        /// The tag.
        tag: Ticket,
        /// The offset in the mailbox.
        offset: u64,
        /// True if the write was a retry of a stored one.
        is_duplicate: bool,
    },
    /// Records are on disk.
    Appended {
        /// The tag.
        tag: Ticket,
        /// The offset of the first record.
        first: u64,
        /// The offset after the last record.
        next: u64,
    },
    /// Messages are in their conversation.
    MessagesAppended {
        /// The tag.
        tag: Ticket,
        /// The smallest sequence number of the messages.
        first: u64,
        /// The largest sequence number plus one.
        next: u64,
        /// Number of messages that were already in the conversation.
        deduplicated: u32,
        /// The ids generated for messages without one, in order.
        made: &'a [String],
    },
    /// Messages of a conversation.
    Messages {
        /// The tag.
        tag: Ticket,
        /// True if more follows.
        more: bool,
        /// The oldest retained message.
        start: u64,
        /// The newest message plus one.
        next: u64,
        /// The messages, in order.
        messages: &'a [conversations::Message<'a>],
    },
    /// Records of a stream.
    Extract {
        /// The tag.
        tag: Ticket,
        /// True if more follows.
        more: bool,
        /// The records.
        extract: Extract<'a>,
    },
    /// The receipt of a one-way message.
    Receipt {
        /// The tag.
        tag: Ticket,
        /// Number of copies enqueued.
        delivered: u32,
        /// Number of copies dropped at full subscribers.
        dropped: u32,
    },
    /// The caller cancelled a call.
    Cancel {
        /// The ticket of the call.
        ticket: Ticket,
    },
    /// The caller consumed items of a stream.
    StreamCredit {
        /// The ticket of the call.
        ticket: Ticket,
        /// Number of items.
        items: u32,
    },
    /// One-way messages of the client were consumed.
    Credit {
        /// Number of messages.
        messages: u32,
        /// Their size in bytes.
        bytes: u64,
    },
    /// The subscribers of a route became full, or have room again.
    Flow {
        /// The client's route.
        route: u16,
        /// True if the client must pause.
        full: bool,
    },
    /// A subscription ended without a request of the client.
    Ended {
        /// The full name.
        name: &'a Name,
        /// The reason.
        code: ErrorCode,
    },
    /// The node will close the connection.
    Goaway {
        /// Milliseconds until then.
        drain_ms: u32,
        /// The text for users.
        message: &'a str,
    },
}

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Queued; the caller must flush at the end of its turn.
    First,
    /// Queued; an earlier caller will flush.
    Queued,
    /// Not queued, because the client does not read. Returned only for `Request`, `Delivery` and
    /// `Send`.
    Full,
    /// The connection is closed.
    Closed,
}

/// The output queue of a client, implemented by a listener. Callable from any thread.
pub trait Outlet: Send + Sync {
    /// Queues output, in the order of the calls.
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed;

    /// Writes queued output to the network, without waiting.
    fn flush(&self);

    /// Returns the number of queued bytes.
    fn queued_size(&self) -> usize;

    /// Sends the client the failure and closes the connection.
    fn dismiss(&self, failure: Failure<'_>);

    /// Closes the connection.
    fn close(&self);
}

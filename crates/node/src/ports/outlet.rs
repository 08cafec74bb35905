//! The way out to one client: what a door must be able to carry.

use std::sync::Arc;

use model::{ErrorCode, Name};
use routing::Ticket;

use crate::conversations;

/// A message's parts; the node reads only the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// Time that remains, in milliseconds.
    pub deadline_ms: Option<u32>,
    /// Opaque metadata entries.
    pub metadata: &'a [u8],
    /// Opaque bytes.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// Bytes that count against windows.
    pub fn size(&self) -> u64 {
        (self.metadata.len() + self.body.len()) as u64
    }
}

/// What a message from a mailbox says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its place in the mailbox.
    pub offset: u64,
    /// How often it is delivered with this time, from 1.
    pub delivery: u32,
    /// When it was written, in milliseconds since 1970-01-01 UTC.
    pub written_ms: u64,
}

/// A record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRecord<'a> {
    /// Its place.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// Opaque bytes.
    pub bytes: &'a [u8],
}

/// A part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extract<'a> {
    /// The oldest offset that is kept.
    pub start: u64,
    /// The offset behind the newest record that is durable.
    pub next: u64,
    /// The records, in order.
    pub records: &'a [StoredRecord<'a>],
}

/// A failure on its way to whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// What went wrong.
    pub code: ErrorCode,
    /// Whether a responder was handed the request.
    pub sent: bool,
    /// Milliseconds after which another try makes sense, 0 when nothing is known.
    pub retry_after_ms: u32,
    /// For people.
    pub message: &'a str,
    /// For programs, from a handler.
    pub details: &'a [u8],
}

impl<'a> Failure<'a> {
    /// A failure before anything was handed to a responder.
    pub const fn new(code: ErrorCode, message: &'a str) -> Self {
        Self {
            code,
            sent: false,
            retry_after_ms: 0,
            message,
            details: &[],
        }
    }

    /// The same, after the request was handed to a responder.
    pub const fn after_sending(self) -> Self {
        Self { sent: true, ..self }
    }
}

/// Everything that can go out to a client. A *tag* is the client's own number for what it asked;
/// a *ticket* is ours for what we ask of it.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing<'a> {
    /// A call for one of the client's subscriptions.
    Request {
        /// The subscription.
        to: &'a Name,
        /// The method, empty for a plain message.
        method: &'a Arc<str>,
        /// Comes back with the reply.
        ticket: Ticket,
        /// Whether many items are welcome.
        stream: bool,
        /// Who asks, when the subscription wants to know.
        source: Option<&'a str>,
        /// The message.
        message: Message<'a>,
    },
    /// A message from the mailbox of one of the client's subscriptions: its answer acknowledges it.
    Delivery {
        /// The subscription.
        to: &'a Name,
        /// The method, empty for a plain message.
        method: &'a Arc<str>,
        /// Comes back with the answer.
        ticket: Ticket,
        /// Who wrote it, when the subscription wants to know.
        source: Option<&'a str>,
        /// Where it is from.
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
        /// Who sends, when the subscription wants to know.
        source: Option<&'a str>,
        /// The message.
        message: Message<'a>,
    },
    /// The answer to a call, or one item of it.
    Reply {
        /// The caller's number.
        tag: Ticket,
        /// Whether more items follow.
        more: bool,
        /// The message.
        message: Message<'a>,
    },
    /// The failure of what the client asked.
    Failure {
        /// The client's number, `None` when the whole connection failed.
        tag: Option<Ticket>,
        /// Why.
        failure: Failure<'a>,
    },
    /// A subscription or its end was accepted.
    Subscribed {
        /// The client's number.
        tag: Ticket,
        /// The full name.
        name: &'a Name,
    },
    /// A write was accepted.
    Copies {
        /// The client's number.
        tag: Ticket,
        /// Subscribers it was enqueued for.
        copies: u32,
    },
    /// A write is on disk.
    Stored {
        /// The client's number.
        tag: Ticket,
        /// Its place in the mailbox.
        offset: u64,
        /// It was there already.
        is_duplicate: bool,
    },
    /// Records are on disk.
    Appended {
        /// The client's number.
        tag: Ticket,
        /// The offset of the first.
        first: u64,
        /// The offset behind the last.
        next: u64,
    },
    /// Messages are in their conversation.
    MessagesAppended {
        /// The client's number.
        tag: Ticket,
        /// The smallest number of one of them.
        first: u64,
        /// The largest, and one.
        next: u64,
        /// How many were there already.
        deduplicated: u32,
        /// The ids of those that came without one, in order.
        made: &'a [String],
    },
    /// What was read of a conversation.
    Messages {
        /// The client's number.
        tag: Ticket,
        /// Whether more follows.
        more: bool,
        /// The number of the oldest message that is kept.
        start: u64,
        /// The number of the newest message, and one.
        next: u64,
        /// The messages, in order.
        messages: &'a [conversations::Message<'a>],
    },
    /// What was read of a stream.
    Extract {
        /// The client's number.
        tag: Ticket,
        /// Whether more follows.
        more: bool,
        /// What it is.
        extract: Extract<'a>,
    },
    /// What became of a send that asked for a report.
    Receipt {
        /// The client's number.
        tag: Ticket,
        /// Copies enqueued.
        delivered: u32,
        /// Copies dropped at full subscribers.
        dropped: u32,
    },
    /// The caller gave up.
    Cancel {
        /// The call.
        ticket: Ticket,
    },
    /// The caller consumed items of a stream.
    StreamCredit {
        /// The call.
        ticket: Ticket,
        /// How many.
        items: u32,
    },
    /// One-way messages of the client were consumed.
    Credit {
        /// How many.
        messages: u32,
        /// Their size.
        bytes: u64,
    },
    /// Subscribers of a route became full, or have room again.
    Flow {
        /// The client's route.
        route: u16,
        /// Whether to pause.
        full: bool,
    },
    /// A subscription ended without being asked to.
    Ended {
        /// The full name.
        name: &'a Name,
        /// Why.
        code: ErrorCode,
    },
    /// The node will close the connection.
    Goaway {
        /// Milliseconds until then.
        drain_ms: u32,
        /// For people.
        message: &'a str,
    },
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Queued, and the caller must flush at the end of its turn.
    First,
    /// Queued; somebody will flush.
    Queued,
    /// The client does not read: nothing was queued. Only for `Request`, `Delivery` and
    /// `Send`.
    Full,
    /// The client is gone.
    Closed,
}

/// A client's way out, implemented by a door. Callable from any thread.
pub trait Outlet: Send + Sync {
    /// Queues; keeps the order of pushes.
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed;

    /// Hands what is queued to the network, without waiting for it.
    fn flush(&self);

    /// Bytes queued.
    fn queued_size(&self) -> usize;

    /// Ends the connection, and has the client told why before.
    fn dismiss(&self, failure: Failure<'_>);

    /// Ends the connection.
    fn close(&self);
}

//! The ports to a client: the output of other clients, and the end of the connection.

use std::sync::Arc;

use model::{ErrorCode, Failure, Name};
use routing::Ticket;

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

/// Output that the node pushes to a client, mostly on behalf of another client. A *tag* is the
/// client's number for its request; a *ticket* is the node's number for a request to the client.
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
    /// One-way messages for one of the client's subscriptions. The queue accepts all messages
    /// or refuses all.
    Sends {
        /// The subscription.
        to: &'a Name,
        /// The method, empty for plain messages.
        method: &'a Arc<str>,
        /// The sender, if the subscription requests it.
        source: Option<&'a str>,
        /// The messages, in order.
        messages: &'a [Message<'a>],
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
    /// The failure of a call, after it was handed on.
    Failure {
        /// The caller's tag.
        tag: Ticket,
        /// The failure.
        failure: Failure<'a>,
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
}

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Queued; the caller must flush at the end of its turn.
    First,
    /// Queued; an earlier caller will flush.
    Queued,
    /// Not queued, because the client does not read. Returned only for `Request`, `Delivery`, `Send`
    /// and `Sends`.
    Full,
    /// The connection is closed.
    Closed,
}

/// The port for the end of a connection, implemented by every listener. Callable from any thread.
pub trait Client: Send + Sync {
    /// Tells the client that the node will close the connection after `drain_ms` milliseconds.
    fn goaway(&self, drain_ms: u32, message: &str);

    /// Sends the client the failure and closes the connection.
    fn dismiss(&self, failure: Failure<'_>);

    /// Closes the connection.
    fn close(&self);

    /// Returns the number of bytes that wait for the client to read.
    fn queued_size(&self) -> usize;
}

/// The port to a client that takes part in messaging: its output queue. Callable from any thread.
pub trait Inbox: Client {
    /// Queues output, in the order of the calls.
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed;

    /// Writes queued output to the network, without waiting.
    fn flush(&self);
}

/// The port to a client.
#[derive(Clone)]
pub enum Outlet {
    /// A client that takes part in messaging.
    Inbox(Arc<dyn Inbox>),
    /// A client that only its own listener answers.
    Client(Arc<dyn Client>),
}

impl Outlet {
    pub(crate) fn client(&self) -> &dyn Client {
        match self {
            Self::Inbox(inbox) => &**inbox,
            Self::Client(client) => &**client,
        }
    }

    pub(crate) fn push(&self, outgoing: Outgoing<'_>) -> Pushed {
        match self {
            Self::Inbox(inbox) => inbox.push(outgoing),
            Self::Client(_) => Pushed::Closed,
        }
    }

    pub(crate) fn flush(&self) {
        if let Self::Inbox(inbox) = self {
            inbox.flush();
        }
    }

    pub(crate) fn queued_size(&self) -> usize {
        self.client().queued_size()
    }
}

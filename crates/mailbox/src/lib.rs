//! The mailbox engine: decides when a message is delivered, to which subscriber, and when it is
//! removed.
//!
//! A mailbox is an agent's durable queue of writes. Its messages are *unacknowledged*: a message is
//! delivered when a subscriber has room, and again until it is acknowledged, its time to live is
//! over, or it is removed by hand. After a configured number of deliveries it becomes a *dead
//! letter*: it stays, and is not delivered again unless it is revived. The engine only decides. It
//! holds a few numbers per message and none of its bytes. The shell stores the bytes, reports when
//! they are durable, and passes the time. The kind of subscriber is a type parameter.
//!
//! Invariants: *an accepted message leaves exactly once; a message that has left is never delivered
//! again; the first deliveries of one sender are made in the order of its writes, and to the same
//! subscriber while any of them is unanswered.*
//!
//! The durable state is a stream of [`record`]s; replaying them restores the mailbox.

mod ids;
mod mailbox;
pub mod record;
mod senders;
mod span;
mod types;

pub use ids::{IDS_KEPT, WriteId};
pub use mailbox::Mailbox;
pub use span::Span;
pub use types::{
    Accepted, Again, Answer, Cause, Eligibility, Limits, MessageState, NewMessage, Offer, Pending,
    Refused, State, Straggler,
};

//! The mailbox engine: which write is handed to whom, when again, and when it is done with.
//!
//! A mailbox is an agent's durable queue of writes. What is in it is *unacknowledged*: it is handed
//! out when a subscriber has room, and again until one has acknowledged it, its time to live is
//! over, or somebody removes it. After as many deliveries as are allowed it is a *dead letter*: it
//! stays, and goes out no more unless somebody gives it back. The engine only decides. It holds a few numbers for each message
//! and none of its bytes; where those are and when they are durable is the shell's to say, and so
//! is the time. What a subscriber *is* stays a type parameter.
//!
//! Invariants: *what was accepted leaves exactly once; what has left is never handed out again;
//! the first deliveries of one sender go out in the order of its writes, and to one subscriber for
//! as long as any of them is unanswered.*
//!
//! What must outlive the memory are [`record`]s, which a stream keeps in order; reading them back
//! makes the same mailbox again.

mod ids;
mod mailbox;
pub mod record;
mod senders;
mod span;
mod terms;

pub use ids::{IDS_KEPT, WriteId};
pub use mailbox::Mailbox;
pub use span::Span;
pub use terms::{
    Accepted, Again, Answer, Cause, Limits, Offer, Pending, Place, Refused, Standing, State,
    Straggler, Written,
};

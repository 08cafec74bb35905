//! The routing engine: subscriptions, receivers of messages, and pending calls.
//!
//! It only decides. The kind of peer is a type parameter, the time is an argument, and concurrency
//! is up to the shell: matching takes `&self`, so it can run concurrently; the rare changes take
//! `&mut self`. It knows no sockets, no clocks and no other engine.

mod calls;
mod table;

pub use calls::{Call, Calls, Ticket};
pub use table::{ConnectionId, Match, NameView, SubscribeOutcome, Subscriber, Table, Target};

//! Messaging between the clients of a node: calls, one-way messages, and durable mailboxes.
//!
//! A listener opens a [`Connection`] for each client, and passes the frames of one read as one
//! [`Turn`]. The turn decides on the thread that read: it finds the subscribers of a name, pushes
//! output into their [`Outlet`]s, and flushes each once, at its end. The outcome of the client's own
//! request is returned, and its listener answers it. [`Messaging::sweep`] ends calls whose deadline
//! has passed.
//!
//! Invariants: *every call ends exactly once; a client that does not read slows its own senders and
//! no other client; an acknowledged message of a mailbox is never delivered again.*
//!
//! This crate does not know frames, protocols, sockets, topics or conversations.

mod admission;
mod connection;
pub mod description;
mod held_call;
mod lane;
mod local;
pub mod mailboxes;
mod messaging;
mod names;
mod one_way;
mod outlet;
mod peer;
mod request;
mod route;
mod router;
mod subscription;
#[cfg(test)]
mod testing;
mod throttle;
mod turn;
mod view;
mod write;

pub use connection::Connection;
pub use description::{DescribedMethod, Description, DescriptionError};
pub use held_call::HeldCall;
pub use messaging::{Limits, Messaging, Refusal};
pub use names::{AgentView, AgentsPage, AgentsWanted, Names, SubscriberView};
pub use one_way::{Copies, MemoryWriteError};
pub use outlet::{Client, Delivery, Inbox, Message, Outgoing, Outlet, Pushed};
pub use peer::Facts;
pub use request::{RequestError, Requested};
pub use route::{Cast, Route};
pub use subscription::SubscribeError;
pub use turn::Turn;
pub use view::ConnectionView;
pub use write::Key;

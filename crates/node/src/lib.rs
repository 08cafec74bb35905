//! The node: composes the engines behind one [`Node`], which is cheap to clone.
//!
//! The edge opens a [`Connection`] for each client, and passes the frames of one read as one
//! [`Turn`]. The engines decide under their locks, on the thread that read. Output is pushed into
//! the receivers' [`Outlet`]s, which are flushed once, at the end of the turn. Other servers
//! and clients are [`ports`], so that a simulation can replace them.
//!
//! This crate knows names, messages and decisions. It does not know frames, HTTP, JSON or sockets.

mod admission;
mod connection;
mod event_feed;
mod held_call;
mod lane;
pub mod mailboxes;
mod node;
mod one_way;
mod parts;
mod peer;
pub mod ports;
mod request;
mod route;
mod router;

mod subscription;
#[cfg(test)]
mod testing;
mod throttle;
mod turn;
mod user_sessions;
mod view;

pub use connection::Connection;
pub use event_feed::EventEncoder;
pub use held_call::HeldCall;
pub use mailboxes::{AcceptedWrite, Key, WriteError};
pub use node::{Limits, Node, Refusal, SocketsSource, SocketsView};
pub use one_way::{Copies, MemoryWriteError};
pub use parts::{OpenError, Parts, QuotaParts, StorageParts, StoreOptions};
pub use peer::Facts;
pub use ports::{Client, Delivery, Inbox, Message, Outgoing, Outlet, Pushed};
pub use request::{RequestError, Requested};
pub use route::{Cast, Route};
pub use routing::{ConnectionId, Ticket};
pub use subscription::SubscribeError;
pub use turn::Turn;
pub use view::{AgentView, ConnectionView, SubscriberView};

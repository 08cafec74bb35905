//! The node: composes the engines behind one [`Node`], which is cheap to clone.
//!
//! The edge opens a [`Connection`] for each client, and passes the frames of one read as one
//! [`Turn`]. The engines decide under their locks, on the thread that read. Output is pushed into
//! the receivers' [`Outlet`]s, which are flushed once, at the end of the turn. Clock, randomness
//! and disk are [`ports`], so that a simulation can replace them.
//!
//! This crate knows names, messages and decisions. It does not know frames, HTTP, JSON or sockets.

pub mod access;
mod bell;
pub mod config;
mod connection;
pub mod conversations;
mod counters;
mod durable;
mod lane;
mod later;
mod node;
mod one_way;
mod parts;
mod peer;
pub mod ports;
pub mod quotas;
pub mod records;
mod storage;
mod store;
#[cfg(test)]
mod testing;
mod throttle;
pub mod tokens;
pub mod topics;
mod turn;
mod view;
pub mod views;
pub mod webhooks;

pub use bell::Bell;
pub use connection::Connection;
pub use counters::{Counter, Counters};
pub use node::{Limits, Node, Refusal, SocketsSource, SocketsView};
pub use one_way::Durability;
pub use parts::{OpenError, Parts, QuotaParts, StorageParts};
pub use peer::Facts;
pub use ports::quota_store::SharedStore;
pub use ports::{Clock, Delivery, Entropy, Extract, Failure, Message, Outgoing, Outlet, Ports};
pub use ports::{Pushed, StoredRecord};
pub use quotas::Quotas;
pub use routing::{ConnectionId, Ticket};
pub use storage::{StorageEvent, StorageState, StorageView, StorageWatch, SyncTimesView};
pub use store::{
    AdminError, Backlog, Key, MailboxBacklog, MailboxView, MessageView, Options as StoreOptions,
    Part, Range,
};
pub use store::{DIRECTORY, NamedStream};
pub use store::{StoreError, Stored, StreamRetention, StreamView};
pub use turn::{Cast, SYSTEM_ORG, Turn};
pub use view::{AgentView, ConnectionView, SubscriberView};
pub use webhooks::WebhookParts;

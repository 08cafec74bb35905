//! The node: composes the engines behind one [`Node`], which is cheap to clone.
//!
//! The edge opens a [`Connection`] for each client, and passes the frames of one read as one
//! [`Turn`]. The engines decide under their locks, on the thread that read. Output is pushed into
//! the receivers' [`Outlet`]s, which are flushed once, at the end of the turn. Other servers
//! and clients are [`ports`], so that a simulation can replace them.
//!
//! This crate knows names, messages and decisions. It does not know frames, HTTP, JSON or sockets.

pub mod access;
pub mod config;
mod connection;
pub mod conversations;
mod lane;
mod node;
mod one_way;
mod parts;
mod peer;
pub mod ports;
pub mod quotas;
pub mod records;
mod request;
mod route;
mod storage;
mod store;
mod subscription;
#[cfg(test)]
mod testing;
mod throttle;
pub mod tokens;
pub mod topics;
mod turn;
mod view;
pub mod views;
pub mod webhooks;

pub use connection::Connection;
pub use node::{Limits, Node, Refusal, SocketsSource, SocketsView};
pub use one_way::{Copies, MemoryWriteError};
pub use parts::{OpenError, Parts, QuotaParts, StorageParts};
pub use peer::Facts;
pub use ports::quota_store::SharedStore;
pub use ports::{Client, Delivery, Inbox, Message, Outgoing, Outlet, Pushed};
pub use quotas::{HeldCall, Quotas, Throttled};
pub use request::{RequestError, Requested};
pub use route::{Cast, Route};
pub use routing::{ConnectionId, Ticket};
pub use storage::{StorageEvent, StorageState, StorageView, StorageWatch, SyncTimesView};
pub use store::{
    AcceptedWrite, AdminError, AppendedRecords, Backlog, Key, MailboxBacklog, MailboxView,
    MessageView, Options as StoreOptions, Part, Range, Stream, StreamExtract, StreamFollower,
};
pub use store::{DIRECTORY, NamedStream};
pub use store::{StorageError, StoreError, Stored, StreamError, StreamRetention, StreamView};
pub use store::{StoredRecord, WriteError};
pub use subscription::SubscribeError;
pub use turn::{SYSTEM_ORG, Turn};
pub use view::{AgentView, ConnectionView, SubscriberView};
pub use webhooks::WebhookParts;

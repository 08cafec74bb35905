//! The node: composes its services behind one [`Node`], which is cheap to clone.
//!
//! [`Node::open`] opens the services from their [`Parts`] and loads what is stored. Listeners use
//! the services by its accessors. Time, randomness, disk and other servers are ports, so that a
//! simulation can replace them.
//!
//! This crate does not know frames, HTTP, JSON or sockets.

mod event_feed;
mod history;
mod node;
mod parts;
mod user_sessions;

pub use event_feed::EventEncoder;
pub use history::{History, ProcessReading, Sample, Series};
pub use node::{Node, SocketsSource, SocketsView};
pub use parts::{OpenError, Parts, QuotaParts, StorageParts, StoreOptions};

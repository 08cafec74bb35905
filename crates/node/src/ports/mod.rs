//! The ports of a node: traits for output to clients, and for external services.

mod names;
mod outlet;

pub use names::Names;
pub use outlet::{Client, Delivery, Inbox, Message, Outgoing, Outlet, Pushed};

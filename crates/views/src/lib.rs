//! Views of conversations: lists, inboxes, expired conversations, and webhook work that is due.
//!
//! Views are derived data: they are made from the events of conversations, and can be rebuilt from
//! the directory and the conversations at any time. So they live in an embedded database (redb)
//! next to the journal and need not be durable at once. They are discarded if they are missing or
//! damaged, or belong to another layout or journal. Appends never wait for views. A query first
//! lets the views catch up, so that a client finds its own writes.
//!
//! Invariant: *views contain only what follows from durable records, whether they were built from
//! events or from the directory.*
//!
//! This crate does not know JSON: labels are extracted from metadata by [`Labels`].

mod advance;
mod catch_up;
mod damage;
mod entry;
mod error;
mod expiry;
mod file;
mod inbox;
mod journal;
mod list;
mod options;
mod reported;
mod scope;
mod service;
mod source;
mod tables;
#[cfg(test)]
mod tests;
mod walk;
mod watch;
mod watchers;

pub use error::ViewsError;
pub use expiry::Due;
pub use file::ViewsLocation;
pub use inbox::{Inbox, InboxQuery, Last, Line};
pub use list::{Archived, Cursor, ListQuery, Listed, Listing, NoCursor};
pub use options::{Labels, Options};
pub use service::{Views, ViewsProgress};
pub use watch::{Changed, InboxWatch};

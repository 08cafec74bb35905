//! The store: the journal's streams by name.
//!
//! The journal identifies streams by number. [`Store`] has the directory, which maps names to
//! numbers, and appends to and reads from named streams. [`Streams`] are the raw streams of
//! clients. [`Health`] is the state of the storage for monitoring.
//!
//! This crate knows names, kinds and records. It does not know mailboxes, conversations, topics,
//! quotas, connections or the content of a record. Invariant: *no record of a stream is durable
//! before its directory entry is.* A stream's entry precedes its records in the same shard, and the
//! blocks of a shard become durable in order, so the ticket of a record covers the entry.

mod directory;
mod error;
mod follow;
mod health;
mod names;
mod store;
mod stream;
mod streams;

pub use journal::Reach;

pub use directory::{DIRECTORY, Kind, Location, Malformed, NamedStream, namespace_of};
pub use error::{FollowError, OpenError, StorageError, StreamError, StreamsError};
pub use follow::StreamFollower;
pub use health::{Health, StorageEvent, StorageState, StorageView, StorageWatch, SyncTimesView};
pub use names::NameCursor;
pub use store::{AppendSize, Store};
pub use stream::{AppendedRecords, Range, StoredRecord, Stream, StreamExtract};
pub use streams::{Retention, StreamView, Streams};

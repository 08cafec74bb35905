//! Where messages are that the node keeps no more: another store, somewhere else.
//!
//! It is told of everything by whoever feeds it ([`crate::conversations::feed`]); the node asks it
//! only for what it has trimmed itself. It may be away at any time, and nothing but such a question
//! waits for it.

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;

use bytes::Bytes;

/// Messages that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The journal that they were in.
    pub journal: u64,
    /// The number of the conversation.
    pub conversation: u64,
    /// Which messages.
    pub seqs: RangeInclusive<u64>,
    /// Their bytes, at most; one message comes even if it is larger.
    pub bytes: usize,
}

/// A message as the journal had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// Its number.
    pub seq: u64,
    /// When it was appended, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The record, byte by byte.
    pub record: Bytes,
}

/// The archive cannot be asked now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Away {
    /// For people.
    pub reason: String,
}

/// An answer that comes in bounded time, whatever the archive does.
pub type Reading = Pin<Box<dyn Future<Output = Result<Vec<Archived>, Away>> + Send>>;

/// See the module's documentation.
pub trait Archive: Send + Sync {
    /// Those of the messages that it has, in order; from the first that is asked for on without a
    /// gap if it has all of them.
    fn read(&self, wanted: Wanted) -> Reading;

    /// How it stands.
    fn view(&self) -> ArchiveView;
}

/// How the archive stands, and what was done since the node was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveView {
    /// Whether it answered last time.
    pub is_connected: bool,
    /// Events that are durable here and not there.
    pub lag_events: u64,
    /// How old the oldest of them is, in milliseconds.
    pub lag_ms: u64,
    /// Batches that were written.
    pub batches: u64,
    /// Messages that were written, those that it had already not counted.
    pub messages: u64,
    /// Messages that it refused and that were set aside.
    pub refused: u64,
    /// Conversations that were erased there.
    pub erased: u64,
    /// Messages that were trimmed here because they are there.
    pub trimmed: u64,
    /// Messages that were read back.
    pub read_back: u64,
    /// Attempts that failed.
    pub errors: u64,
    /// Why the last one did, until one succeeds.
    pub error: Option<String>,
}

//! The port to the archive: a second store for messages that retention removes from the node.
//!
//! The archive is filled by [`crate::feed`]. The node reads from it only messages
//! that it has trimmed. The archive may be unavailable at any time; only such reads wait for it.

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;

use bytes::Bytes;

/// A read of archived messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveQuery {
    /// The id of the journal that contained them.
    pub journal: u64,
    /// The number of the conversation.
    pub conversation: u64,
    /// The range of messages.
    pub seqs: RangeInclusive<u64>,
    /// Maximum size in bytes; one message is returned even if it is larger.
    pub bytes: usize,
}

/// An archived message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedMessage {
    /// The sequence number.
    pub seq: u64,
    /// The time of the append, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The record, byte by byte as in the journal.
    pub record: Bytes,
}

/// The archive is unavailable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ArchiveUnavailable {
    /// The reason, for display.
    pub reason: String,
}

/// The result of a read, within bounded time.
pub type ArchiveRead =
    Pin<Box<dyn Future<Output = Result<Vec<ArchivedMessage>, ArchiveUnavailable>> + Send>>;

/// An archive of messages.
pub trait Archive: Send + Sync {
    /// Returns the requested messages that the archive has, in order: without gaps from the first
    /// requested one if it has all of them.
    fn read(&self, wanted: ArchiveQuery) -> ArchiveRead;

    /// Returns the archive's state.
    fn view(&self) -> ArchiveView;
}

/// The archive's state, and its statistics since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveView {
    /// True if the last request succeeded.
    pub is_connected: bool,
    /// Number of durable events that are not archived yet.
    pub lag_events: u64,
    /// Age of the oldest of these events, in milliseconds.
    pub lag_ms: u64,
    /// Number of batches written.
    pub batches: u64,
    /// Number of messages written, without messages that the archive already had.
    pub messages: u64,
    /// Number of messages that the archive refused and that were set aside.
    pub refused: u64,
    /// Number of conversations erased in the archive.
    pub erased: u64,
    /// Number of messages trimmed in the node because they are archived.
    pub trimmed: u64,
    /// Number of messages read back.
    pub read_back: u64,
    /// Number of failed attempts.
    pub errors: u64,
    /// The error of the last attempt; `None` if it succeeded.
    pub error: Option<String>,
}

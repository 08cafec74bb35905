//! Persistence of quotas.
//!
//! There are four streams in one shard of the journal: the *state* (cells, holds, ids), the
//! *changes* (limits, factors, halts, overrides), the *audit* log, and the *usage*, which has a module
//! of its own. In the state and the changes, the last record of each item counts. When most of a
//! stream is superseded, its live items are appended again, a few cells at a time, and the old part is
//! trimmed; changes meanwhile are appended after them as usual.
//!
//! Invariant: *the records of a cell are in the order of its changes*, because an append holds the
//! lock of the cell's shard.

mod append;
mod restore;
mod rewrite;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::{Guard, Journal, ReadError, Record, ShardId, StreamId, Ticket};
use parking_lot::Mutex;
use platform::Durable;
use quota::record::Malformed;
use store::{Location, Store};

/// The streams of quotas in a store.
pub struct QuotaStreams {
    /// The store that has them.
    pub store: Arc<Store>,
    /// The shard of all four streams.
    pub shard: ShardId,
    /// The stream of cells, holds and ids.
    pub state: StreamId,
    /// The stream of limits, factors, halts and overrides.
    pub changes: StreamId,
    /// The stream of the audit log.
    pub audit: StreamId,
    /// The stream of usage.
    pub usage: StreamId,
}

/// The stored quotas cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A read failed.
    #[error("the stored quotas cannot be read: {0}")]
    Read(#[from] ReadError),
    /// A stored record is malformed.
    #[error("the stored quotas are invalid: {0}")]
    Malformed(#[from] Malformed),
    /// A write failed.
    #[error("quotas cannot be kept: {0}")]
    Append(#[from] journal::AppendError),
    /// The configured limits cannot be put into effect.
    #[error("the limits of the configuration cannot stand: {0}")]
    Refused(String),
    /// The configured limits are invalid.
    #[error("{} of the limits make no sense: {}", .0.len(), .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Limits(Vec<quota::Mistake>),
}

/// The quota streams, and how far they are written.
pub(super) struct QuotaJournal {
    pub(super) streams: QuotaStreams,
    /// Digest of the configured limits, to detect a changed configuration.
    digest: AtomicU64,
    /// Bytes of state appended since the last rewrite.
    written: AtomicU64,
    rewriting: Mutex<RewriteProgress>,
}

/// Progress of rewriting the state.
#[derive(Default)]
struct RewriteProgress {
    /// Bytes of the last rewrite.
    alive: u64,
    /// The rewrite in progress: the offset before which records are trimmed at its end, the shard,
    /// and the position in it.
    under_way: Option<(u64, u16, usize)>,
    /// Bytes of this rewrite so far.
    size: u64,
}

impl QuotaJournal {
    /// Returns the state of a node that has read nothing yet.
    pub(super) fn new(streams: QuotaStreams) -> Self {
        Self {
            streams,
            digest: AtomicU64::new(0),
            written: AtomicU64::new(0),
            rewriting: Mutex::default(),
        }
    }

    /// Locks the shard of the streams, to append to them.
    pub(super) fn lock(&self, now_ms: u64) -> Guard<'_> {
        self.journal().lock(self.streams.shard, now_ms)
    }

    /// Returns the durability of the records up to a ticket: of one or several decisions, and of
    /// charges for operations that are stored elsewhere.
    fn durable(&self, ticket: Ticket) -> Durable {
        Durable::of_earlier(self.journal(), [Some(ticket), None])
    }

    /// Returns the offset of the first record of a stream; 0 if the stream does not exist.
    fn start(&self, stream: StreamId) -> u64 {
        let state = self.journal().stream(self.streams.shard, stream);
        state.map_or(0, |state| state.start)
    }

    pub(super) fn journal(&self) -> &Arc<Journal> {
        &self.streams.store.journal
    }

    /// Passes every durable record of a stream to `take`, oldest first.
    pub(super) fn each_record(
        &self,
        stream: StreamId,
        take: impl FnMut(&Record) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let shard = self.streams.shard;
        self.streams
            .store
            .each_record(Location { shard, stream }, take)
    }

    /// Appends records to the state; they become durable together or not at all.
    fn append(
        &self,
        mut guard: Guard<'_>,
        records: &[(u8, &[u8])],
    ) -> Result<Option<Ticket>, journal::AppendError> {
        let size: usize = records.iter().map(|(_, bytes)| bytes.len()).sum();
        if records.len() > 1 {
            guard.reserve(size, records.len())?;
        }
        let mut ticket = None;
        for (tag, bytes) in records {
            ticket = Some(guard.append(self.streams.state, None, *tag, bytes)?.ticket);
        }
        self.written.fetch_add(size as u64, Ordering::Relaxed);
        Ok(ticket)
    }
}

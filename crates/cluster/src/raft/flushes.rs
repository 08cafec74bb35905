//! Callbacks for entries that are on their way to the disk.
//!
//! A sync may complete several callbacks. Only the last is called, because it covers the earlier
//! ones, and openraft's task that forwards two completions within a microsecond sleeps for a
//! millisecond.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};

use journal::{Index, Journal, ShardId, Status};
use openraft::storage::IOFlushed;
use parking_lot::Mutex;

use super::types::{LogId, Types};

/// Appends of one shard that are not on disk.
pub(super) struct Flushes {
    journal: Arc<Journal>,
    shard: ShardId,
    /// The last entry and the callback of each append, ascending.
    pending: Mutex<VecDeque<(LogId, IOFlushed<Types>)>>,
    /// The last entry that is on disk, or was before it became void.
    flushed: Mutex<Option<LogId>>,
}

impl Flushes {
    /// Creates a queue without appends. `flushed` is the last entry, which is on disk.
    pub(super) fn new(
        journal: Arc<Journal>,
        shard: ShardId,
        flushed: Option<LogId>,
    ) -> Arc<Flushes> {
        Arc::new(Flushes {
            journal,
            shard,
            pending: Mutex::default(),
            flushed: Mutex::new(flushed),
        })
    }

    /// Returns the last entry that is on disk, or was before it became void.
    pub(super) fn flushed(&self) -> Option<LogId> {
        *self.flushed.lock()
    }

    /// Calls `callback` when the entry is on disk.
    pub(super) fn add(self: &Arc<Self>, last: LogId, callback: IOFlushed<Types>) {
        self.pending.lock().push_back((last, callback));
        self.check();
    }

    /// Drops the callbacks of void blocks, from `first` on.
    pub(super) fn cut(&self, first: Index) {
        let mut pending = self.pending.lock();
        pending.retain(|(last, _)| block_of(last) < first);
    }

    /// Calls what is due, and waits for the first append that is not.
    fn check(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut pending = self.pending.lock();
        let mut flushed = Vec::new();
        let mut failed = Vec::new();
        while let Some((last, _)) = pending.front() {
            let status = self
                .journal
                .notify_written(self.shard, block_of(last), &waker);
            if status == Status::Pending {
                break;
            }
            let Some((last, callback)) = pending.pop_front() else {
                break;
            };
            match status {
                Status::Durable => {
                    *self.flushed.lock() = Some(last);
                    match flushed.last_mut() {
                        Some(last @ IOFlushed::Notify(_)) => *last = callback,
                        _ => flushed.push(callback),
                    }
                }
                _ => failed.push(callback),
            }
        }
        drop(pending);
        for callback in flushed {
            callback.io_completed(Ok(()));
        }
        for callback in failed {
            let error = io::Error::other("the write-ahead log has failed");
            callback.io_completed(Err(error));
        }
    }
}

/// Returns the block of an entry.
fn block_of(entry: &LogId) -> Index {
    Index(entry.index + 1)
}

impl Wake for Flushes {
    fn wake(self: Arc<Self>) {
        self.check();
    }
}

//! Pending erases: streams whose bytes must still leave the disk.
//!
//! None of it is stored: the stream tables of extents record what was erased, and a start notes
//! every stream of which an extent still has such bytes. Stale bytes in the line's files are not
//! recorded anywhere; if anything was ever erased, they may contain it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Line;
use crate::{Position, ShardId, StreamId};

/// The pending erases.
#[derive(Debug, Default)]
pub struct Erasures {
    count: AtomicUsize,
    pending: Mutex<PendingErasures>,
}

#[derive(Debug, Default)]
struct PendingErasures {
    streams: BTreeMap<(ShardId, StreamId), Erasure>,
    oldest_ms: u64,
    inherited: Option<Position>,
}

/// An erase: the offset below which records must go, and when it was requested.
#[derive(Clone, Copy, Debug)]
struct Erasure {
    below: u64,
    at_ms: u64,
}

/// Streams with the offset below which their bytes must go.
pub(super) type EraseTargets = BTreeMap<(ShardId, StreamId), u64>;

/// Summary of the pending erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraseBacklog {
    /// Number of streams. Files of an earlier run may hold bytes of others.
    pub streams: usize,
    /// Time of the oldest request in milliseconds since 1970; 0 if it was before the start.
    pub oldest_ms: u64,
}

impl Erasures {
    /// Adds an erase of a stream's records below an offset.
    pub fn note(&self, shard: ShardId, stream: StreamId, below: u64, at_ms: u64) {
        let mut pending = self.pending.lock();
        let is_first = pending.streams.is_empty();
        pending.oldest_ms = if is_first {
            at_ms
        } else {
            pending.oldest_ms.min(at_ms)
        };
        let erasure = pending
            .streams
            .entry((shard, stream))
            .or_insert(Erasure { below, at_ms });
        erasure.below = erasure.below.max(below);
        self.count.store(pending.count(), Ordering::Release);
    }

    /// Returns a summary of the pending erases; `None` if there are none.
    pub fn pending(&self) -> Option<EraseBacklog> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let pending = self.pending.lock();
        (pending.count() > 0).then_some(EraseBacklog {
            streams: pending.streams.len(),
            oldest_ms: match pending.inherited {
                Some(_) => 0,
                None => pending.oldest_ms,
            },
        })
    }

    /// Returns true if a record of the stream with this offset is to be erased.
    pub(super) fn concerns(&self, shard: ShardId, stream: StreamId, offset: u64) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let pending = self.pending.lock();
        let erasure = pending.streams.get(&(shard, stream));
        erasure.is_some_and(|erasure| offset < erasure.below)
    }

    /// Declares that an earlier run erased something. Its files, which are the spares and the line
    /// up to `until`, may hold such bytes until they are zeroed.
    pub fn inherit(&self, until: Position) {
        let mut pending = self.pending.lock();
        pending.inherited = Some(until);
        self.count.store(pending.count(), Ordering::Release);
    }

    /// Returns the end of an earlier run's files, if they may hold erased bytes.
    pub(super) fn inherited(&self) -> Option<Position> {
        self.pending.lock().inherited
    }

    /// Returns the erases that are durable and can be carried out.
    pub(super) fn durable(&self, line: &dyn Line) -> EraseTargets {
        // The line is called without holding the lock, because it adds erases under its own.
        let of = |(&stream, erasure): (&_, &Erasure)| (stream, erasure.below);
        let pending: Vec<_> = self.pending.lock().streams.iter().map(of).collect();
        let is_durable = |&((shard, stream), below): &_| line.start(shard, stream) >= below;
        pending.into_iter().filter(is_durable).collect()
    }

    /// Removes erases that were carried out. All files of an earlier run have been zeroed.
    pub(super) fn settle(&self, done: &EraseTargets) {
        let mut pending = self.pending.lock();
        pending.inherited = None;
        for (stream, below) in done {
            if pending
                .streams
                .get(stream)
                .is_some_and(|erasure| erasure.below <= *below)
            {
                pending.streams.remove(stream);
            }
        }
        pending.oldest_ms = pending
            .streams
            .values()
            .map(|erasure| erasure.at_ms)
            .min()
            .unwrap_or(0);
        self.count.store(pending.count(), Ordering::Release);
    }
}

impl PendingErasures {
    fn count(&self) -> usize {
        self.streams.len() + usize::from(self.inherited.is_some())
    }
}

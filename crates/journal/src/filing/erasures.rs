//! Which streams' bytes must still leave the disk.
//!
//! Nothing of it is on disk: the stream tables of extents say what was erased, and the next start
//! notes every stream of which an extent still holds such bytes. What files of the line hold beside
//! their blocks nobody says; if anything was ever erased, they may hold that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Line;
use crate::{Position, ShardId, StreamId};

/// Erases that are under way.
#[derive(Debug, Default)]
pub struct Erasures {
    count: AtomicUsize,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    streams: BTreeMap<(ShardId, StreamId), Erasure>,
    oldest_ms: u64,
    inherited: Option<Position>,
}

/// The records below an offset, and when that was asked for.
#[derive(Clone, Copy, Debug)]
struct Erasure {
    below: u64,
    at_ms: u64,
}

/// For streams, the offset below which their bytes must go.
pub(super) type Taken = BTreeMap<(ShardId, StreamId), u64>;

/// What is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Streams; files that an earlier run used may hold bytes of others.
    pub streams: usize,
    /// When the oldest was asked for; 0 if that was before the start.
    pub oldest_ms: u64,
}

impl Erasures {
    /// The bytes of a stream's records below an offset must leave the disk.
    pub fn note(&self, shard: ShardId, stream: StreamId, below: u64, at_ms: u64) {
        let mut noted = self.noted.lock();
        let is_first = noted.streams.is_empty();
        noted.oldest_ms = if is_first {
            at_ms
        } else {
            noted.oldest_ms.min(at_ms)
        };
        let erasure = noted
            .streams
            .entry((shard, stream))
            .or_insert(Erasure { below, at_ms });
        erasure.below = erasure.below.max(below);
        self.count.store(noted.count(), Ordering::Release);
    }

    /// What is left; `None` if nothing is.
    pub fn pending(&self) -> Option<Pending> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let noted = self.noted.lock();
        (noted.count() > 0).then_some(Pending {
            streams: noted.streams.len(),
            oldest_ms: match noted.inherited {
                Some(_) => 0,
                None => noted.oldest_ms,
            },
        })
    }

    /// An earlier run erased something, and the spares and the line's files up to here are its:
    /// they may hold such bytes until they have been zeroed.
    pub fn inherit(&self, until: Position) {
        let mut noted = self.noted.lock();
        noted.inherited = Some(until);
        self.count.store(noted.count(), Ordering::Release);
    }

    /// How far the files of an earlier run go, if they may hold what was erased.
    pub(super) fn inherited(&self) -> Option<Position> {
        self.noted.lock().inherited
    }

    /// Those that are durable, so that they can be carried out now.
    pub(super) fn durable(&self, line: &dyn Line) -> Taken {
        // The line is asked without the lock: it notes erasures under its own.
        let of = |(&stream, erasure): (&_, &Erasure)| (stream, erasure.below);
        let noted: Vec<_> = self.noted.lock().streams.iter().map(of).collect();
        let is_durable = |&((shard, stream), below): &_| line.start(shard, stream) >= below;
        noted.into_iter().filter(is_durable).collect()
    }

    /// These have been carried out, and no file of an earlier run is left as it was.
    pub(super) fn settle(&self, done: &Taken) {
        let mut noted = self.noted.lock();
        noted.inherited = None;
        for (stream, below) in done {
            if noted
                .streams
                .get(stream)
                .is_some_and(|erasure| erasure.below <= *below)
            {
                noted.streams.remove(stream);
            }
        }
        noted.oldest_ms = noted
            .streams
            .values()
            .map(|erasure| erasure.at_ms)
            .min()
            .unwrap_or(0);
        self.count.store(noted.count(), Ordering::Release);
    }
}

impl Noted {
    fn count(&self) -> usize {
        self.streams.len() + usize::from(self.inherited.is_some())
    }
}

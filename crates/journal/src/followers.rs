//! Followers: wakers that wait for a stream of a shard to grow.
//!
//! Their number is bounded. A follower is removed by [`Followers::remove`] or with its first
//! wake-up.

use std::collections::BTreeMap;
use std::task::Waker;

use bytes::Bytes;

use crate::record;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::{ShardId, StreamId};

/// Followers per shard at most.
const FOLLOWERS_MAX: u64 = 1 << 17;

/// Id of a follower, used to remove it before its wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    pub(crate) shard: ShardId,
    pub(crate) stream: StreamId,
    pub(crate) number: u64,
}

/// Result of [`Journal::follow`](crate::Journal::follow).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The stream can be read already, or has failed; the waker is not stored.
    Ready,
    /// The waker is woken once when the stream grows, is trimmed, or the line fails.
    Waiting(Following),
    /// There are too many followers; the waker is not stored.
    Refused,
}

/// The followers to wake after a commit.
#[derive(Debug)]
pub(crate) enum WakeScope {
    /// None: nothing was committed, or there are no followers.
    Empty,
    /// The followers of the streams with records in these bodies of blocks.
    StreamsIn(Vec<Bytes>),
    /// All, because not all bodies are in memory.
    All,
}

/// The followers of one shard.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    /// Wakers by stream and follower number.
    waiting: Mutex<BTreeMap<(StreamId, u64), Waker>>,
    count: AtomicU64,
    numbers: AtomicU64,
}

impl Followers {
    /// Stores the waker unless `is_ready` returns true. `is_ready` is called after the follower has
    /// become visible to the waking thread, so no wake-up is lost.
    pub(crate) fn add(
        &self,
        shard: ShardId,
        stream: StreamId,
        waker: &Waker,
        is_ready: impl FnOnce() -> bool,
    ) -> Follow {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock();
        if self.count.fetch_add(1, Ordering::SeqCst) >= FOLLOWERS_MAX {
            self.count.fetch_sub(1, Ordering::SeqCst);
            return Follow::Refused;
        }
        if is_ready() {
            self.count.fetch_sub(1, Ordering::SeqCst);
            return Follow::Ready;
        }
        waiting.insert((stream, number), waker.clone());
        Follow::Waiting(Following {
            shard,
            stream,
            number,
        })
    }

    pub(crate) fn remove(&self, following: &Following) {
        let key = (following.stream, following.number);
        if self.waiting.lock().remove(&key).is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Wakes the followers that a commit has touched.
    pub(crate) fn wake_scope(&self, scope: WakeScope) {
        match scope {
            WakeScope::Empty => {}
            WakeScope::StreamsIn(bodies) => bodies.iter().for_each(|body| self.wake_in(body)),
            WakeScope::All => self.wake_all(),
        }
    }

    /// Wakes the followers of all streams that have a record in the body.
    fn wake_in(&self, body: &[u8]) {
        if self.is_empty() {
            return;
        }
        let mut woken = Vec::new();
        let mut waiting = self.waiting.lock();
        for (_, record) in record::records(body).map_while(Result::ok) {
            let touched = (record.stream, 0)..=(record.stream, u64::MAX);
            woken.extend(waiting.extract_if(touched, |_, _| true));
        }
        drop(waiting);
        self.wake(woken);
    }

    /// Wakes all followers.
    pub(crate) fn wake_all(&self) {
        let woken = std::mem::take(&mut *self.waiting.lock());
        self.wake(woken);
    }

    fn wake(&self, woken: impl IntoIterator<Item = ((StreamId, u64), Waker)>) {
        for (_, waker) in woken {
            self.count.fetch_sub(1, Ordering::SeqCst);
            waker.wake();
        }
    }
}

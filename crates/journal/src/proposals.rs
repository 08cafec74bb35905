//! Wakes the task that proposes blocks to a consensus when a shard has one.

use std::task::Waker;

use crate::ShardId;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// A bit set of shards with a block to propose, and the task that waits for one.
#[derive(Debug, Default)]
pub(crate) struct Proposals {
    shards: AtomicU64,
    is_waiting: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Proposals {
    /// Marks a shard as having a block to propose and wakes the task.
    pub(crate) fn ring(&self, shard: ShardId) {
        self.mark(shard);
        self.wake();
    }

    /// Marks a shard as having a block to propose. The caller must wake the task later.
    pub(crate) fn mark(&self, shard: ShardId) {
        self.shards.fetch_or(1 << shard.0, Ordering::SeqCst);
    }

    /// Wakes the task if a shard is marked that it has not seen yet.
    pub(crate) fn wake_if_rung(&self) {
        if self.shards.load(Ordering::SeqCst) != 0 {
            self.wake();
        }
    }

    /// Returns and clears the marked shards, as bits. The waker is woken once when a shard is marked
    /// next.
    pub(crate) fn take_marked(&self, waker: &Waker) -> u64 {
        *self.waker.lock() = Some(waker.clone());
        self.is_waiting.store(true, Ordering::SeqCst);
        self.shards.swap(0, Ordering::SeqCst)
    }

    fn wake(&self) {
        if self.is_waiting.load(Ordering::SeqCst) && self.is_waiting.swap(false, Ordering::SeqCst) {
            let waker = self.waker.lock().take();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

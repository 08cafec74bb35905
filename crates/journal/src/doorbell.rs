//! Wakes the line's thread when there is work, and lets it sleep when there is none.
//!
//! One bit per shard marks the shards with new blocks. Ringing costs one system call if the thread
//! sleeps and has not been woken since, otherwise none.

use std::sync::OnceLock;
use std::time::Duration;

use crate::ShardId;
use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// A bit set of shards with work, and the thread that sleeps until one is set.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    shards: AtomicU64,
    /// Set for events other than a new block: a spare segment, a request to seal, shutdown.
    other: AtomicBool,
    is_sleeping: AtomicBool,
    sleeper: OnceLock<Thread>,
}

impl Doorbell {
    /// Marks the shard as having a new block and wakes the thread.
    pub(crate) fn ring(&self, shard: ShardId) {
        self.mark(shard);
        self.wake();
    }

    /// Marks the shard as having a new block. The caller must wake the thread later.
    pub(crate) fn mark(&self, shard: ShardId) {
        let bit = 1 << shard.0;
        // The thread looks at the shard after it has taken the mark. A mark that is still there
        // covers this block too, and reading it leaves the cache line shared.
        if self.shards.load(Ordering::SeqCst) & bit == 0 {
            self.shards.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Wakes the thread if work is marked that it has not seen yet.
    pub(crate) fn wake_if_rung(&self) {
        if self.has_rung() {
            self.wake();
        }
    }

    /// Signals an event other than a new block.
    pub(crate) fn signal(&self) {
        self.other.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Returns and clears the marked shards, as bits, lowest first.
    pub(crate) fn take_marked(&self) -> u64 {
        self.other.store(false, Ordering::SeqCst);
        self.shards.swap(0, Ordering::SeqCst)
    }

    /// Sleeps until the bell rings, for at most `limit`. Only one thread may call it.
    pub(crate) fn sleep(&self, limit: Option<Duration>) {
        self.sleeper.get_or_init(thread::current);
        self.is_sleeping.store(true, Ordering::SeqCst);
        if !self.has_rung() {
            match limit {
                Some(limit) => thread::park_timeout(limit),
                None => thread::park(),
            }
        }
        self.is_sleeping.store(false, Ordering::SeqCst);
    }

    pub(crate) fn has_rung(&self) -> bool {
        self.shards.load(Ordering::SeqCst) != 0 || self.other.load(Ordering::SeqCst)
    }

    fn wake(&self) {
        if self.is_sleeping.load(Ordering::SeqCst) && self.is_sleeping.swap(false, Ordering::SeqCst)
        {
            // The sleeping thread registers in `sleeper` before it sets `is_sleeping`.
            self.sleeper.get().inspect(|sleeper| sleeper.unpark());
        }
    }
}

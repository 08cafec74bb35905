//! How the line's thread learns that there is work, and sleeps when there is none.
//!
//! One bit per shard says where blocks wait. Whoever rings pays one system call if the thread
//! sleeps and nobody has rung since, and none otherwise.

use std::sync::OnceLock;
use std::time::Duration;

use crate::ShardId;
use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    shards: AtomicU64,
    /// Something else than a block: a spare, a wish, the end.
    other: AtomicBool,
    is_sleeping: AtomicBool,
    sleeper: OnceLock<Thread>,
}

impl Doorbell {
    /// A block of the shard waits.
    pub(crate) fn ring(&self, shard: ShardId) {
        self.note(shard);
        self.wake();
    }

    /// A block of the shard waits; whoever says so sees to it that the thread is woken.
    pub(crate) fn note(&self, shard: ShardId) {
        self.shards.fetch_or(1 << shard.0, Ordering::SeqCst);
    }

    /// Wakes the thread for what was noted, if it has not seen it by itself.
    pub(crate) fn wake_if_rung(&self) {
        if self.has_rung() {
            self.wake();
        }
    }

    /// Something else has happened.
    pub(crate) fn poke(&self) {
        self.other.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// The shards that rang, as bits, lowest first. They are not told again.
    pub(crate) fn answer(&self) -> u64 {
        self.other.store(false, Ordering::SeqCst);
        self.shards.swap(0, Ordering::SeqCst)
    }

    /// Sleeps until somebody rings, or as long as `limit`. Only one thread does.
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
            // Whoever sleeps has said who it is before it said that it sleeps.
            self.sleeper.get().inspect(|sleeper| sleeper.unpark());
        }
    }
}

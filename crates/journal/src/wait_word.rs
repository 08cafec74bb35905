//! A word that threads sleep on.

use crate::sync::{AtomicU32, Ordering, futex};

/// A futex word with a count of its sleepers.
#[derive(Debug, Default)]
pub(crate) struct Word {
    wakes: AtomicU32,
    sleepers: AtomicU32,
}

impl Word {
    /// Returns the value for [`Word::sleep_while`]. Call it before checking the condition.
    pub(crate) fn look(&self) -> u32 {
        self.wakes.load(Ordering::SeqCst)
    }

    /// Sleeps unless the word was woken after `seen` was read. May return spuriously.
    pub(crate) fn sleep_while(&self, seen: u32) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        futex::sleep_while(&self.wakes, seen);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn wake_all(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&self.wakes);
        }
    }
}

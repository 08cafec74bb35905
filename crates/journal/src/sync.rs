//! What threads meet on, in one place, so that a model checker can take its place.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::thread;

pub(crate) use parking_lot::Mutex;

/// Sleeping on a word of memory. Both calls may return for no reason, and their errors mean no
/// more than that.
pub(crate) mod futex {
    use std::sync::atomic::AtomicU32;

    use rustix::thread::futex::{Flags, wait, wake};

    /// Sleeps if the word has that value, until somebody wakes.
    pub(crate) fn sleep_while(word: &AtomicU32, value: u32) {
        let _ = wait(word, Flags::PRIVATE, value, None);
    }

    /// Wakes all who sleep on the word, with one call.
    pub(crate) fn wake_all(word: &AtomicU32) {
        let _ = wake(word, Flags::PRIVATE, i32::MAX as u32);
    }
}

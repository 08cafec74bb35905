//! Atomics, threads and locks of the journal, behind one module so that a model checker can replace
//! them.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::thread;

pub(crate) use parking_lot::Mutex;

/// Futex calls. Both may return spuriously, and their errors mean no more than a spurious return.
pub(crate) mod futex {
    use std::sync::atomic::AtomicU32;

    use rustix::thread::futex::{Flags, wait, wake};

    /// Sleeps until [`wake_all`] is called, if the word has `value`.
    pub(crate) fn sleep_while(word: &AtomicU32, value: u32) {
        let _ = wait(word, Flags::PRIVATE, value, None);
    }

    /// Wakes all threads that sleep on the word, with one system call.
    pub(crate) fn wake_all(word: &AtomicU32) {
        let _ = wake(word, Flags::PRIVATE, i32::MAX as u32);
    }
}

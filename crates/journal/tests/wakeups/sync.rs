//! The interface of `src/sync.rs`, scheduled by shuttle.

pub(crate) use shuttle::sync::MutexGuard;
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use shuttle::thread;

/// A mutex without poisoning: a thread that panics ends the schedule.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The kernel's futex table, with its one guarantee: no thread falls asleep after the word has
/// changed. A wake-up reaches exactly the sleepers on that word.
pub(crate) mod futex {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use shuttle::sync::{Condvar, Mutex};

    use super::{AtomicU32, Ordering};

    shuttle::lazy_static! {
        static ref SLEEPERS: Mutex<BTreeMap<usize, Arc<Condvar>>> = Mutex::default();
    }

    pub(crate) fn sleep_while(word: &AtomicU32, value: u32) {
        let mut table = SLEEPERS
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if word.load(Ordering::SeqCst) == value {
            let place = table.entry(address(word)).or_default().clone();
            drop(place.wait(table));
        }
    }

    pub(crate) fn wake_all(word: &AtomicU32) {
        let mut table = SLEEPERS
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(place) = table.remove(&address(word)) {
            place.notify_all();
        }
    }

    fn address(word: &AtomicU32) -> usize {
        std::ptr::from_ref(word).addr()
    }
}

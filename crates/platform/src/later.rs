//! A value computed on another thread, for a task that polls for it.

use std::task::Waker;

use parking_lot::Mutex;

/// A slot for one value, which is put once and taken once.
pub struct Later<T>(Mutex<Slot<T>>);

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl<T> Default for Later<T> {
    fn default() -> Self {
        Self(Mutex::new(Slot {
            value: None,
            waker: None,
        }))
    }
}

impl<T> Later<T> {
    /// Stores the value and wakes the waiting task.
    pub fn put(&self, value: T) {
        let mut slot = self.0.lock();
        slot.value = Some(value);
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the value. If it is not there yet, returns `None` and wakes the waker once it is.
    pub fn take(&self, waker: &Waker) -> Option<T> {
        let mut slot = self.0.lock();
        let value = slot.value.take();
        if value.is_none() {
            slot.waker = Some(waker.clone());
        }
        value
    }
}

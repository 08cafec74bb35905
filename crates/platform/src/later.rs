//! A value computed on another thread, for a task that polls for it.

use std::task::Waker;

use parking_lot::Mutex;

/// A slot for one value, which is put once and taken once.
pub struct Later<T>(Mutex<Inside<T>>);

struct Inside<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl<T> Default for Later<T> {
    fn default() -> Self {
        Self(Mutex::new(Inside {
            value: None,
            waker: None,
        }))
    }
}

impl<T> Later<T> {
    /// Stores the value and wakes the waiting task.
    pub fn put(&self, value: T) {
        let mut inside = self.0.lock();
        inside.value = Some(value);
        let waker = inside.waker.take();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the value. If it is not there yet, returns `None` and wakes the waker once it is.
    pub fn take(&self, waker: &Waker) -> Option<T> {
        let mut inside = self.0.lock();
        let value = inside.value.take();
        if value.is_none() {
            inside.waker = Some(waker.clone());
        }
        value
    }
}

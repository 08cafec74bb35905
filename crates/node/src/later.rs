//! A value computed on another thread, for a task that polls for it.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;

use crate::node::Inner;
use crate::ports::offload::Overloaded;

/// A slot for one value, which is put once and taken once.
pub(crate) struct Later<T>(Mutex<Inside<T>>);

struct Inside<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl Inner {
    /// Computes a value on a thread that may wait for the disk.
    pub(crate) fn make_elsewhere<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Arc<Later<T>>, Overloaded> {
        let later = Arc::new(Later::default());
        let put = later.clone();
        self.offload(Box::new(move || put.put(make())))?;
        Ok(later)
    }
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
    pub(crate) fn put(&self, value: T) {
        let mut inside = self.0.lock();
        inside.value = Some(value);
        let waker = inside.waker.take();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the value. If it is not there yet, returns `None` and wakes the waker once it is.
    pub(crate) fn take(&self, waker: &Waker) -> Option<T> {
        let mut inside = self.0.lock();
        let value = inside.value.take();
        if value.is_none() {
            inside.waker = Some(waker.clone());
        }
        value
    }
}

//! Something that is made elsewhere, for a task that comes back for it.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;

use crate::handle::Inner;
use crate::ports::offload::Overloaded;

/// Put once, taken once.
pub(crate) struct Later<T>(Mutex<Inside<T>>);

struct Inside<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl Inner {
    /// Has something made by whoever may wait for the disk.
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
    /// Here it is.
    pub(crate) fn put(&self, value: T) {
        let mut inside = self.0.lock();
        inside.value = Some(value);
        let waker = inside.waker.take();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// What was put. Until then there is nothing, and the waker is woken once there is.
    pub(crate) fn take(&self, waker: &Waker) -> Option<T> {
        let mut inside = self.0.lock();
        let value = inside.value.take();
        if value.is_none() {
            inside.waker = Some(waker.clone());
        }
        value
    }
}

//! A bell: one wake-up flag for many operations that wait within one task. Ringing it wakes the
//! task, which then checks all of them.
//!
//! The bell does not know which operation rang it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use parking_lot::Mutex;

/// A wake-up flag shared by the operations of one task.
#[derive(Debug, Default)]
pub struct Bell {
    has_rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    /// Creates a bell that has already rung, because nothing was checked yet.
    pub fn rung() -> Arc<Self> {
        let bell = Self::default();
        bell.note();
        Arc::new(bell)
    }

    /// Sets the task to wake.
    pub fn listen(&self, task: &Waker) {
        let mut known = self.task.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
    }

    /// Rings without waking the task, which is awake.
    pub fn note(&self) {
        self.has_rung.store(true, Ordering::Release);
    }

    /// Rings and wakes the task.
    pub fn ring(&self) {
        self.note();
        let task = self.task.lock().clone();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Returns whether the bell has rung since the last call.
    pub fn has_rung(&self) -> bool {
        self.has_rung.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ringing_wakes_the_listening_task_once() {
        let task = Bell::rung();
        assert!(task.has_rung());
        let bell = Arc::new(Bell::default());
        assert!(!bell.has_rung());
        bell.listen(&Waker::from(task.clone()));
        bell.note();
        assert!(bell.has_rung() && !task.has_rung());
        Waker::from(bell.clone()).wake();
        assert!(bell.has_rung() && task.has_rung());
        assert!(!bell.has_rung() && !task.has_rung());
    }
}

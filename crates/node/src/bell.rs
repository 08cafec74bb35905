//! One bell for many that wait within one task: whoever may go on rings it, which wakes the task, and the
//! task looks after all of them.
//!
//! It does not know who has rung.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use parking_lot::Mutex;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Bell {
    has_rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    /// One that has rung already: nobody has been looked after yet.
    pub fn rung() -> Arc<Self> {
        let bell = Self::default();
        bell.note();
        Arc::new(bell)
    }

    /// From now on that task is woken.
    pub fn listen(&self, task: &Waker) {
        let mut known = self.task.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
    }

    /// Rings for a task that is awake.
    pub fn note(&self) {
        self.has_rung.store(true, Ordering::Release);
    }

    /// Rings, and wakes the task.
    pub fn ring(&self) {
        self.note();
        let task = self.task.lock().clone();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Whether it has rung since this was last asked.
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
    fn whoever_rings_wakes_the_task_that_listens_and_is_heard_once() {
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

//! The wakers of an HTTP/2 client's task.
//!
//! The HTTP/2 connection is polled with a [`ClientTask`] as its waker, which only notes the wake: the
//! connection and its streams change only under the client's lock, and the thread that holds the
//! lock polls them again. The socket and timers wake the task itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use parking_lot::Mutex;

/// The task of a client, and what its connection has to know of it.
#[derive(Debug, Default)]
pub(super) struct ClientTask {
    /// The waker of the task; `None` until it has polled the client.
    waker: Mutex<Option<Waker>>,
    /// The connection or one of its streams has to be polled again.
    is_due: AtomicBool,
    /// Another thread polls the connection, only to send.
    is_foreign: AtomicBool,
}

impl ClientTask {
    /// Notes the waker of the task, which polls the client now.
    pub(super) fn register(&self, task: &Waker) {
        let mut waker = self.waker.lock();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(task)) {
            *waker = Some(task.clone());
        }
    }

    /// Calls `poll` with the context of the task; with `other` if the task is not known yet.
    pub(super) fn with_context<T>(
        &self,
        other: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        match &*self.waker.lock() {
            Some(waker) => poll(&mut Context::from_waker(waker)),
            None => poll(other),
        }
    }

    /// Returns whether the connection or a stream has to be polled again.
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Forgets earlier wakes: everything that they were for is polled after this.
    pub(super) fn clear_due(&self) {
        self.is_due.store(false, Ordering::Relaxed);
    }

    /// Sets whether another thread polls the connection. Nothing is read then.
    pub(super) fn set_foreign(&self, is_foreign: bool) {
        self.is_foreign.store(is_foreign, Ordering::Relaxed);
    }

    /// Returns whether another thread polls the connection.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign.load(Ordering::Relaxed)
    }
}

impl Wake for ClientTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Relaxed);
    }
}

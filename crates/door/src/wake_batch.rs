//! Wakes many tasks of one thread with one system call.
//!
//! A sync that serves thirty connections wakes thirty tasks, and a runtime that is woken from
//! another thread needs a system call for each. A thread that runs a [`WakeBatch`] is woken once:
//! the tasks to wake are listed, and the thread wakes them itself.
//!
//! Invariant: *every woken task is polled.* A thread without a [`WakeBatch`] wakes its tasks as
//! usual.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

thread_local! {
    static HERE: RefCell<Option<Arc<List>>> = const { RefCell::new(None) };
}

/// The tasks of a thread that are to be woken.
#[derive(Debug, Default)]
struct List(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    woken: Vec<Waker>,
    /// The waker of the thread's [`WakeBatch`].
    thread: Option<Waker>,
}

/// A future that never ends. Polled by the thread on which it was made, it wakes the listed tasks.
#[derive(Debug)]
pub struct WakeBatch {
    list: Arc<List>,
    spare: Vec<Waker>,
}

impl WakeBatch {
    /// Creates it for this thread: wakers that `waker` makes here from now on use it.
    #[expect(
        clippy::new_without_default,
        reason = "it changes what the thread does"
    )]
    pub fn new() -> Self {
        let list = Arc::<List>::default();
        HERE.set(Some(list.clone()));
        Self {
            list,
            spare: Vec::new(),
        }
    }
}

impl Future for WakeBatch {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut woken = std::mem::take(&mut self.spare);
        {
            let mut inside = self.list.0.lock();
            std::mem::swap(&mut inside.woken, &mut woken);
            if !inside
                .thread
                .as_ref()
                .is_some_and(|it| it.will_wake(cx.waker()))
            {
                inside.thread = Some(cx.waker().clone());
            }
        }
        woken.drain(..).for_each(Waker::wake);
        self.spare = woken;
        Poll::Pending
    }
}

impl Drop for WakeBatch {
    fn drop(&mut self) {
        // The list is not read any more, so wake its tasks now.
        let inside = std::mem::take(&mut *self.list.0.lock());
        inside.woken.into_iter().for_each(Waker::wake);
        HERE.take();
    }
}

/// The waker of a task, and the one that wakes it together with others.
#[derive(Debug, Default)]
pub struct Wakers(Option<(Waker, Waker)>);

impl Wakers {
    /// Returns a waker for `task`, which belongs to this thread, that wakes it together with
    /// others.
    pub fn of(&mut self, task: &Waker) -> &Waker {
        let wakers = match self.0.take() {
            Some(wakers) if wakers.0.will_wake(task) => wakers,
            _ => (task.clone(), waker(task)),
        };
        &self.0.insert(wakers).1
    }
}

fn waker(task: &Waker) -> Waker {
    let list = HERE.with_borrow(Clone::clone);
    list.map_or_else(
        || task.clone(),
        |list| {
            let task = task.clone();
            Waker::from(Arc::new(One { list, task }))
        },
    )
}

/// A waker that puts a task on a list.
struct One {
    list: Arc<List>,
    task: Waker,
}

impl Wake for One {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut inside = self.list.0.lock();
        if inside.thread.is_none() {
            drop(inside);
            return self.task.wake_by_ref();
        }
        inside.woken.push(self.task.clone());
        // The first entry wakes the thread; entries before it runs need no further call.
        if inside.woken.len() == 1
            && let Some(thread) = inside.thread.clone()
        {
            drop(inside);
            thread.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted_waker::counted;

    #[test]
    fn thirty_task_wakes_cause_one_wake_of_the_thread() {
        let mut together = WakeBatch::new();
        let (thread, thread_waker) = counted();
        let mut cx = Context::from_waker(&thread_waker);
        assert!(Pin::new(&mut together).poll(&mut cx).is_pending());
        let (task, task_waker) = counted();
        let wakers: Vec<_> = (0..30).map(|_| waker(&task_waker)).collect();
        for round in 1..=3 {
            let wakers = wakers.clone();
            std::thread::spawn(move || wakers.into_iter().for_each(Waker::wake))
                .join()
                .unwrap();
            assert_eq!((thread.get(), task.get()), (round, 30 * (round - 1)));
            assert!(Pin::new(&mut together).poll(&mut cx).is_pending());
            assert_eq!(task.get(), 30 * round);
        }
    }

    #[test]
    fn listed_tasks_are_woken_when_together_is_dropped() {
        let mut together = WakeBatch::new();
        let (_, thread_waker) = counted();
        let mut cx = Context::from_waker(&thread_waker);
        assert!(Pin::new(&mut together).poll(&mut cx).is_pending());
        let (task, task_waker) = counted();
        let waker = waker(&task_waker);
        waker.wake_by_ref();
        drop(together);
        assert_eq!(task.get(), 1);
        waker.wake_by_ref();
        assert_eq!(task.get(), 2);
        assert!(super::waker(&task_waker).will_wake(&task_waker));
    }

    #[test]
    fn a_thread_without_together_wakes_tasks_at_once() {
        let (task, task_waker) = counted();
        waker(&task_waker).wake();
        assert_eq!(task.get(), 1);
    }
}

//! Values that are dropped at the end of a thread's pass over its connections.
//!
//! A connection's appends go to the disk when its round is dropped. If each task dropped its own
//! round when it is polled again, every connection would be polled twice for each read. A thread
//! that runs a [`PassEnd`] polls one task for all of them: it comes after the tasks that were ready
//! when the first value was added.
//!
//! Invariant: *every value is dropped, without a further event.* On a thread without a [`PassEnd`]
//! no value is accepted.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

thread_local! {
    static HERE: RefCell<Option<Pass>> = const { RefCell::new(None) };
}

/// Values of a thread beyond whose number the list gives memory back.
const VALUES_KEPT: usize = 1024;

/// The values to drop at the end of the thread's pass.
#[derive(Default)]
struct Pass {
    values: Vec<Box<dyn Any>>,
    /// The waker of the [`PassEnd`], once it was polled.
    task: Option<Waker>,
}

/// A future that never ends. Spawned on the thread on which it was made, it ends the thread's passes.
#[derive(Debug)]
pub struct PassEnd {
    /// Its passes are those of the thread that made it.
    passes: PhantomData<()>,
}

impl PassEnd {
    /// Creates it for this thread: [`drop_at_pass_end`] uses it from now on.
    #[expect(
        clippy::new_without_default,
        reason = "it changes what the thread does"
    )]
    pub fn new() -> Self {
        HERE.set(Some(Pass::default()));
        Self {
            passes: PhantomData,
        }
    }
}

impl Future for PassEnd {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let values = HERE.with_borrow_mut(|pass| {
            let pass = pass.get_or_insert_default();
            pass.task.get_or_insert_with(|| cx.waker().clone());
            std::mem::take(&mut pass.values)
        });
        give_back(drop_all(values));
        Poll::Pending
    }
}

impl Drop for PassEnd {
    fn drop(&mut self) {
        let pass = HERE.take();
        drop(pass);
    }
}

/// Drops the values, and returns their list. Not under the thread's borrow: a drop may do anything.
fn drop_all(mut values: Vec<Box<dyn Any>>) -> Vec<Box<dyn Any>> {
    values.clear();
    values.shrink_to(VALUES_KEPT);
    values
}

/// Returns the list for the next pass, unless that has begun.
fn give_back(values: Vec<Box<dyn Any>>) {
    HERE.with_borrow_mut(|pass| {
        if let Some(pass) = pass
            && pass.values.is_empty()
        {
            pass.values = values;
        }
    });
}

/// Drops the value that `take` returns at the end of the thread's pass. Returns false, without
/// calling `take`, if the thread has no [`PassEnd`].
pub fn drop_at_pass_end<T: 'static>(take: impl FnOnce() -> T) -> bool {
    add(|| Some(Box::new(take())))
}

/// Takes the value to be dropped at the end of the thread's pass, like [`drop_at_pass_end`]. Until then
/// other connections of the pass may use it ([`take_from_pass`]). Returns false, and leaves the value
/// in place, if the thread has no [`PassEnd`].
pub fn leave_to_pass<T: 'static>(value: &mut Option<Box<T>>) -> bool {
    value.is_none() || add(|| value.take().map(|value| value as Box<dyn Any>))
}

fn add(take: impl FnOnce() -> Option<Box<dyn Any>>) -> bool {
    HERE.with_borrow_mut(|pass| {
        let Some((values, task)) = pass
            .as_mut()
            .and_then(|pass| Some((&mut pass.values, pass.task.as_ref()?)))
        else {
            return false;
        };
        // The first value wakes the task, which drops those that come before it runs too.
        if values.is_empty() {
            task.wake_by_ref();
        }
        values.extend(take());
        true
    })
}

/// Takes the newest value that is to be dropped at the end of the thread's pass, if it is a `T` that
/// `fits`. The caller leaves it again ([`leave_to_pass`]) or drops it.
pub fn take_from_pass<T: 'static>(fits: impl FnOnce(&T) -> bool) -> Option<Box<T>> {
    HERE.with_borrow_mut(|pass| {
        let values = &mut pass.as_mut()?.values;
        let newest = values.pop_if(|newest| newest.downcast_ref().is_some_and(fits))?;
        newest.downcast().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::counted_waker::counted;

    #[test]
    fn values_of_a_pass_cause_one_wake_and_are_dropped_by_the_next_poll() {
        let (count, waker) = counted();
        let mut cx = Context::from_waker(&waker);
        let mut end = PassEnd::new();
        assert!(Pin::new(&mut end).poll(&mut cx).is_pending());
        let value = Rc::new(());
        for pass in 1..=3 {
            for _ in 0..30 {
                assert!(drop_at_pass_end(|| value.clone()));
            }
            assert_eq!(count.get(), pass);
            assert_eq!(Rc::strong_count(&value), 31);
            assert!(Pin::new(&mut end).poll(&mut cx).is_pending());
            assert_eq!(Rc::strong_count(&value), 1);
        }
        assert!(drop_at_pass_end(|| value.clone()));
        drop(end);
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    fn thread_without_a_polled_pass_end_takes_no_value() {
        let take = || panic!("it is not taken");
        assert!(!drop_at_pass_end(take));
        let end = PassEnd::new();
        assert!(!drop_at_pass_end(take));
        drop(end);
        assert!(!drop_at_pass_end(take));
        let mut value = Some(Box::new(7));
        assert!(!leave_to_pass(&mut value));
        assert_eq!(value.as_deref(), Some(&7));
    }

    #[test]
    fn connections_of_a_pass_use_one_value_until_it_is_dropped() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut end = PassEnd::new();
        assert!(Pin::new(&mut end).poll(&mut cx).is_pending());
        let value = Rc::new(7);
        assert!(take_from_pass(|_: &Rc<i32>| true).is_none());
        assert!(drop_at_pass_end(|| value.clone()));
        assert!(take_from_pass(|_: &Rc<u64>| true).is_none());
        assert!(take_from_pass(|it: &Rc<i32>| **it == 8).is_none());
        for _ in 0..3 {
            let mut shared = take_from_pass(|it: &Rc<i32>| **it == 7);
            assert!(shared.is_some());
            assert!(take_from_pass(|_: &Rc<i32>| true).is_none());
            assert!(leave_to_pass(&mut shared));
            assert!(shared.is_none());
            assert_eq!(Rc::strong_count(&value), 2);
        }
        assert!(Pin::new(&mut end).poll(&mut cx).is_pending());
        assert_eq!(Rc::strong_count(&value), 1);
        assert!(take_from_pass(|_: &Rc<i32>| true).is_none());
    }

    #[test]
    fn a_drop_may_add_a_value() {
        struct Adds(Rc<()>);
        impl Drop for Adds {
            fn drop(&mut self) {
                let value = self.0.clone();
                assert!(drop_at_pass_end(|| value));
            }
        }
        let mut cx = Context::from_waker(Waker::noop());
        let mut end = PassEnd::new();
        assert!(Pin::new(&mut end).poll(&mut cx).is_pending());
        let value = Rc::new(());
        assert!(drop_at_pass_end(|| Adds(value.clone())));
        assert!(Pin::new(&mut end).poll(&mut cx).is_pending());
        assert_eq!(Rc::strong_count(&value), 2);
        assert!(Pin::new(&mut end).poll(&mut cx).is_pending());
        assert_eq!(Rc::strong_count(&value), 1);
    }
}

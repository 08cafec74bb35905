//! What is told later: when it is on disk, or when somebody else has done their part.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::durable::{Durable, Unconfirmed};

/// What goes on until there is an answer. It is called again when the waker was woken.
type Steps<T> = Box<dyn FnMut(&Waker) -> Poll<Result<T, Unconfirmed>> + Send>;

/// An answer that may be told when it is there, and not before: a future, or something to look at.
/// Whoever drops it does not undo what was asked for.
#[must_use = "nothing is told before this says so"]
pub struct Pending<T>(Inside<T>);

enum Inside<T> {
    Known(Option<T>, Option<Durable>),
    Steps(Steps<T>),
}

impl<T> Pending<T> {
    /// Known, and nothing to wait for.
    pub(super) fn now(answer: T) -> Self {
        Self(Inside::Known(Some(answer), None))
    }

    /// Known, and told when that is on disk.
    pub(super) fn after(durable: Durable, answer: T) -> Self {
        Self(Inside::Known(Some(answer), Some(durable)))
    }

    /// Not known yet.
    pub(super) fn steps(
        steps: impl FnMut(&Waker) -> Poll<Result<T, Unconfirmed>> + Send + 'static,
    ) -> Self {
        Self(Inside::Steps(Box::new(steps)))
    }

    /// The answer; until it is there nothing, and the waker is woken once it may be.
    ///
    /// # Panics
    /// When it is asked again after it has answered.
    pub fn poll_answer(&mut self, waker: &Waker) -> Poll<Result<T, Unconfirmed>> {
        match &mut self.0 {
            Inside::Known(answer, durable) => {
                if let Some(durable) = durable
                    && let Err(unconfirmed) = std::task::ready!(durable.poll_durable(waker))
                {
                    return Poll::Ready(Err(unconfirmed));
                }
                let answer = answer.take();
                Poll::Ready(Ok(answer.expect("an answer is taken once")))
            }
            Inside::Steps(steps) => steps(waker),
        }
    }
}

impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T, Unconfirmed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_answer(cx.waker())
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pending")
    }
}

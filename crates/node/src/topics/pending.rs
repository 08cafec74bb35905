//! Answers that become available later: when data is durable, or when another member has acted.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::durable::{Durable, Unconfirmed};

/// Computes the answer in steps; polled again after its waker was woken.
type Steps<T> = Box<dyn FnMut(&Waker) -> Poll<Result<T, Unconfirmed>> + Send>;

/// A pending answer, usable as a future or by polling. Dropping it does not undo the request.
#[must_use = "nothing is told before this says so"]
pub struct Pending<T>(Inside<T>);

enum Inside<T> {
    Known(Option<T>, Option<Durable>),
    Steps(Steps<T>),
}

impl<T> Pending<T> {
    /// Returns an answer that is ready now.
    pub(super) fn now(answer: T) -> Self {
        Self(Inside::Known(Some(answer), None))
    }

    /// Returns an answer that is sent when `durable` is.
    pub(super) fn after(durable: Durable, answer: T) -> Self {
        Self(Inside::Known(Some(answer), Some(durable)))
    }

    /// Returns an answer that is computed in steps.
    pub(super) fn steps(
        steps: impl FnMut(&Waker) -> Poll<Result<T, Unconfirmed>> + Send + 'static,
    ) -> Self {
        Self(Inside::Steps(Box::new(steps)))
    }

    /// Returns the answer, or registers the waker and returns `Pending`.
    ///
    /// # Panics
    ///
    /// When it is polled again after it has answered.
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

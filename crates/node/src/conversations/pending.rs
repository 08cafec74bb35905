//! Outcomes that may be sent only when the writes they depend on are durable.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use journal::{Journal, Ticket};

use super::Refusal;
use crate::durable::Durable;

/// An outcome, and the tickets that must be durable before it is sent.
pub(crate) struct Undurable<T> {
    pub(crate) tickets: [Option<Ticket>; 2],
    pub(crate) outcome: Result<T, Refusal>,
}

/// A pending outcome, usable as a future or, for answers sent in order, polled at the front of a
/// queue ([`Pending::poll_durable`]).
#[must_use = "it is done in any case, and nobody is told"]
pub struct Pending<T> {
    durable: Durable,
    /// `None` after it was returned.
    outcome: Option<Result<T, Refusal>>,
}

impl<T> Pending<T> {
    pub(crate) fn new(
        journal: &Arc<Journal>,
        tickets: [Option<Ticket>; 2],
        outcome: Result<T, Refusal>,
    ) -> Self {
        Self {
            durable: Durable::new(journal, tickets),
            outcome: Some(outcome),
        }
    }

    /// Converts the successful outcome.
    pub fn map<U>(self, told: impl FnOnce(T) -> U) -> Pending<U> {
        Pending {
            durable: self.durable,
            outcome: self.outcome.map(|outcome| outcome.map(told)),
        }
    }

    /// Returns the outcome with its tickets, without waiting.
    pub(super) fn into_undurable(self) -> Undurable<T> {
        Undurable {
            tickets: self.durable.tickets(),
            outcome: self.outcome.unwrap_or_else(|| Err(Refusal::unconfirmed())),
        }
    }

    /// Returns the outcome once it is durable; until then registers the waker for one wake-up.
    /// Never ready again after it has returned the outcome.
    pub fn poll_durable(&mut self, waker: &Waker) -> Poll<Result<T, Refusal>> {
        let durable = std::task::ready!(self.durable.poll_durable(waker));
        match (durable, self.outcome.take()) {
            (Ok(()), Some(outcome)) => Poll::Ready(outcome),
            _ => Poll::Ready(Err(Refusal::unconfirmed())),
        }
    }
}

impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_durable(cx.waker())
    }
}

impl<T> std::fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pending({:?})", self.durable)
    }
}

//! Outcomes that are known later: when records are on disk, or when another thread or another client
//! has acted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use journal::{Journal, Ticket};

use crate::durable::{Durable, NotDurable};
use crate::later::Later;

/// Computes an outcome in steps; called again after its waker was woken.
type Steps<T, E> = Box<dyn FnMut(&Waker) -> Poll<Result<T, E>> + Send>;

/// A pending outcome: a future or, for answers that are sent in order, polled at the front of a queue
/// ([`Pending::poll_answer`]). Dropping it does not undo the request.
#[must_use = "dropping it loses the outcome of a request that is executed anyway"]
pub struct Pending<T, E = NotDurable>(State<T, E>);

enum State<T, E> {
    /// The outcome, to be reported when its records are on disk.
    Decided {
        /// `None` after it was returned.
        outcome: Option<Result<T, E>>,
        durable: Option<Durable>,
        /// The ticket and the waker that are registered with the journal.
        watched: Option<(Ticket, Waker)>,
    },
    /// Another thread decides.
    Later(Arc<Later<Pending<T, E>>>),
    Steps(Steps<T, E>),
}

impl<T, E> Pending<T, E> {
    /// Returns an outcome to be reported when the ticket is durable, if there is one.
    #[inline]
    pub fn new(journal: &Arc<Journal>, ticket: Option<Ticket>, outcome: Result<T, E>) -> Self {
        let durable = ticket.map(|ticket| Durable::new(journal, [None, Some(ticket)]));
        Self::decided(durable, outcome)
    }

    /// Returns an outcome that may be reported now.
    #[inline]
    pub fn known(outcome: Result<T, E>) -> Self {
        Self::decided(None, outcome)
    }

    /// Returns a value that may be reported now.
    #[inline]
    pub fn now(value: T) -> Self {
        Self::known(Ok(value))
    }

    /// Returns a value to be reported when `durable` is reached.
    #[inline]
    pub fn after(durable: Durable, value: T) -> Self {
        Self::decided(Some(durable), Ok(value))
    }

    /// Returns an outcome to be reported when `durable` is reached. An error is held back too, if it
    /// depends on records that are not on disk yet.
    #[inline]
    pub fn decided_after(durable: Durable, outcome: Result<T, E>) -> Self {
        Self::decided(Some(durable), outcome)
    }

    /// Returns the outcome that another thread decides.
    pub fn later(later: Arc<Later<Self>>) -> Self {
        Self(State::Later(later))
    }

    /// Returns an outcome that is computed in steps.
    pub fn steps(steps: impl FnMut(&Waker) -> Poll<Result<T, E>> + Send + 'static) -> Self {
        Self(State::Steps(Box::new(steps)))
    }

    fn decided(durable: Option<Durable>, outcome: Result<T, E>) -> Self {
        Self(State::Decided {
            outcome: Some(outcome),
            durable,
            watched: None,
        })
    }
}

impl<T, E: From<NotDurable>> Pending<T, E> {
    /// Returns the outcome, or registers the waker, which is woken once.
    ///
    /// # Panics
    ///
    /// When it is polled again after it has returned the outcome.
    pub fn poll_answer(&mut self, waker: &Waker) -> Poll<Result<T, E>> {
        while let State::Later(later) = &self.0 {
            match later.take(waker) {
                Some(decided) => *self = decided,
                None => return Poll::Pending,
            }
        }
        match &mut self.0 {
            State::Decided {
                outcome,
                durable,
                watched,
            } => {
                if let Some(durable) = durable
                    && let Err(unconfirmed) = ready!(durable.poll_watched(watched, waker))
                {
                    return Poll::Ready(Err(unconfirmed.into()));
                }
                Poll::Ready(outcome.take().expect("an outcome is taken once"))
            }
            State::Steps(steps) => steps(waker),
            State::Later(_) => Poll::Pending,
        }
    }
}

impl<T, E> Pending<T, E>
where
    T: Send + 'static,
    E: From<NotDurable> + Send + 'static,
{
    /// Converts a successful outcome.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U + Send + 'static) -> Pending<U, E> {
        match self.0 {
            State::Decided {
                outcome,
                durable,
                watched,
            } => Pending(State::Decided {
                outcome: outcome.map(|outcome| outcome.map(convert)),
                durable,
                watched,
            }),
            rest => {
                let (mut rest, mut convert) = (Self(rest), Some(convert));
                Pending::steps(move |waker| {
                    let outcome = ready!(rest.poll_answer(waker));
                    let convert = convert.take().expect("an outcome is taken once");
                    Poll::Ready(outcome.map(convert))
                })
            }
        }
    }
}

impl<T, E> Unpin for Pending<T, E> {}

impl<T, E: From<NotDurable>> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_answer(cx.waker())
    }
}

impl<T, E> std::fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pending")
    }
}

//! Results that may be reported only once they are on disk.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use journal::{Index, Journal, Outcomes, Stage, Status, Ticket};
use model::ErrorCode;

/// The reason why an operation is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDurable {
    /// The journal failed: it is unknown whether the operation is on disk.
    #[error(
        "the journal has failed: whether this is on disk is unknown until the node is restarted"
    )]
    Failed,
    /// Another node took over the lead. It is unknown whether it has the operation.
    #[error("another node took over before this was committed: whether it is stored is unknown")]
    Cut,
    /// Another node took over the lead before the operation was replicated: nothing of it is stored,
    /// and repeating it is safe.
    #[error("another node leads what this is stored in; nothing was stored")]
    Moved,
}

impl NotDurable {
    /// Returns the error code: `moved` or `unconfirmed`.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Failed | Self::Cut => ErrorCode::Unconfirmed,
            Self::Moved => ErrorCode::Moved,
        }
    }

    /// Returns the result of a wait for a ticket with this status.
    pub fn result(status: Status) -> Poll<Result<(), Self>> {
        match status {
            Status::Pending => Poll::Pending,
            Status::Durable => Poll::Ready(Ok(())),
            Status::Failed => Poll::Ready(Err(Self::Failed)),
            Status::Cut => Poll::Ready(Err(Self::Cut)),
            Status::Moved => Poll::Ready(Err(Self::Moved)),
        }
    }
}

/// A wait for an operation to be on disk: a future, or polled by callers that answer in order.
#[derive(Clone)]
#[must_use = "report no result before it is on disk"]
pub struct Durable {
    outcomes: Outcomes,
    /// An earlier operation on which the outcome depends, and the operation itself; index 0 if
    /// nothing has to be on disk.
    tickets: [Ticket; 2],
    /// The second ticket is that of the operation itself.
    has_own: bool,
    /// The stage that the operations must reach.
    stage: Stage,
}

impl Durable {
    /// Returns a wait for an earlier operation on which the outcome depends, and for all that the
    /// operation itself has written. It is [`NotDurable::Moved`] only if the latter is.
    pub fn new(journal: &Arc<Journal>, tickets: [Option<Ticket>; 2]) -> Self {
        Self {
            outcomes: journal.outcomes(),
            tickets: tickets.map(Option::unwrap_or_default),
            has_own: true,
            stage: Stage::Committed,
        }
    }

    /// Waits only until the operations are on the disk of this node, which on a cluster is before
    /// they are committed.
    pub fn written_here(self) -> Self {
        Self {
            stage: Stage::Written,
            ..self
        }
    }

    /// Returns a wait for earlier operations on which an outcome depends. It is never
    /// [`NotDurable::Moved`]: something that the outcome reports may be stored.
    pub fn of_earlier(journal: &Arc<Journal>, tickets: [Option<Ticket>; 2]) -> Self {
        Self {
            has_own: false,
            ..Self::new(journal, tickets)
        }
    }

    /// Returns the result once it is known; until then, the waker is woken when it may be.
    pub fn poll_durable(&self, waker: &Waker) -> Poll<Result<(), NotDurable>> {
        for ticket in self.tickets.into_iter().filter(is_awaited) {
            let status = match self.outcomes.status_at(self.stage, ticket) {
                Status::Pending => self.outcomes.notify_at(self.stage, ticket, waker),
                status => status,
            };
            ready!(self.result(status))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Like [`Durable::poll_durable`], for repeated polls: `watched` is the ticket and the waker that
    /// are registered already.
    pub(crate) fn poll_watched(
        &self,
        watched: &mut Option<(Ticket, Waker)>,
        waker: &Waker,
    ) -> Poll<Result<(), NotDurable>> {
        for ticket in self.tickets.into_iter().filter(is_awaited) {
            let mut status = self.outcomes.status_at(self.stage, ticket);
            if status == Status::Pending {
                if let Some((known, last)) = watched
                    && *known == ticket
                    && last.will_wake(waker)
                {
                    return Poll::Pending;
                }
                status = self.outcomes.notify_at(self.stage, ticket, waker);
            }
            if status == Status::Pending {
                *watched = Some((ticket, waker.clone()));
            }
            ready!(self.result(status))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Blocks until the operations are committed, or will never be. Must not be called on threads
    /// that serve connections.
    pub fn wait(&self) -> Result<(), NotDurable> {
        for ticket in self.tickets.into_iter().filter(is_awaited) {
            let status = self.outcomes.wait(ticket);
            if let Poll::Ready(Err(error)) = self.result(status) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the result of the wait for one of the tickets.
    #[inline]
    fn result(&self, status: Status) -> Poll<Result<(), NotDurable>> {
        match NotDurable::result(status) {
            Poll::Ready(Err(NotDurable::Moved)) if !self.is_own_moved() => {
                Poll::Ready(Err(NotDurable::Cut))
            }
            result => result,
        }
    }

    /// Returns true if nothing of the operation itself is stored.
    fn is_own_moved(&self) -> bool {
        self.has_own && self.outcomes.status_at(Stage::Committed, self.tickets[1]) == Status::Moved
    }
}

/// Returns false if there is nothing to wait for.
#[inline]
fn is_awaited(ticket: &Ticket) -> bool {
    ticket.index > Index(0)
}

impl Future for Durable {
    type Output = Result<(), NotDurable>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_durable(cx.waker())
    }
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Durable({:?})", self.tickets)
    }
}

#[cfg(test)]
mod tests;

//! Results that may be reported only once they are on disk.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use journal::{Journal, Status, Ticket};

/// The journal failed: it is unknown whether the operation is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal has failed: whether this is on disk is unknown until the node is restarted")]
pub struct Unconfirmed;

/// A wait for an operation to be on disk: a future, or polled by callers that answer in order.
#[derive(Clone)]
#[must_use = "report no result before it is on disk"]
pub struct Durable {
    journal: Arc<Journal>,
    /// The operation and an operation that it depends on; empty if nothing has to be on disk.
    tickets: [Option<Ticket>; 2],
}

impl Durable {
    /// Returns a wait for the operations with these tickets.
    pub fn new(journal: &Arc<Journal>, tickets: [Option<Ticket>; 2]) -> Self {
        let journal = journal.clone();
        Self { journal, tickets }
    }

    /// Returns the result once it is known; until then, the waker is woken when it may be.
    pub fn poll_durable(&self, waker: &Waker) -> Poll<Result<(), Unconfirmed>> {
        for ticket in self.tickets.into_iter().flatten() {
            let status = match self.journal.status(ticket) {
                Status::Pending => self.journal.notify(ticket, waker),
                status => status,
            };
            match status {
                Status::Pending => return Poll::Pending,
                Status::Failed => return Poll::Ready(Err(Unconfirmed)),
                Status::Durable => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Like [`Durable::poll_durable`], for repeated polls: `watched` is the ticket and the waker that
    /// are registered already.
    pub(crate) fn poll_watched(
        &self,
        watched: &mut Option<(Ticket, Waker)>,
        waker: &Waker,
    ) -> Poll<Result<(), Unconfirmed>> {
        for ticket in self.tickets.into_iter().flatten() {
            let mut status = self.journal.status(ticket);
            if status == Status::Pending {
                if let Some((known, last)) = watched
                    && *known == ticket
                    && last.will_wake(waker)
                {
                    return Poll::Pending;
                }
                status = self.journal.notify(ticket, waker);
            }
            match status {
                Status::Pending => {
                    *watched = Some((ticket, waker.clone()));
                    return Poll::Pending;
                }
                Status::Failed => return Poll::Ready(Err(Unconfirmed)),
                Status::Durable => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Blocks until the result is known. Must not be called on threads that serve connections.
    pub fn wait(&self) -> Result<(), Unconfirmed> {
        let mut tickets = self.tickets.into_iter().flatten();
        match tickets.all(|ticket| self.journal.wait(ticket) == Status::Durable) {
            true => Ok(()),
            false => Err(Unconfirmed),
        }
    }
}

impl Future for Durable {
    type Output = Result<(), Unconfirmed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_durable(cx.waker())
    }
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Durable({:?})", self.tickets)
    }
}

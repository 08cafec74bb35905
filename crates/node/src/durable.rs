//! What may be told when it is on disk, and not before.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use journal::{Journal, Status, Ticket};

/// What was done may be on disk, or not: the journal has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the journal has failed: whether this is on disk will be known when the node is started again"
)]
pub struct Unconfirmed;

/// Ends when something is on disk: a future; or, for whoever answers in order, something to look at.
#[derive(Clone)]
#[must_use = "nothing is told before it is on disk"]
pub struct Durable {
    journal: Arc<Journal>,
    /// What it is, and what it rests on; nothing if it need not be on disk.
    tickets: [Option<Ticket>; 2],
}

impl Durable {
    pub(crate) fn new(journal: &Arc<Journal>, tickets: [Option<Ticket>; 2]) -> Self {
        let journal = journal.clone();
        Self { journal, tickets }
    }

    /// What must be on disk.
    pub(crate) fn tickets(&self) -> [Option<Ticket>; 2] {
        self.tickets
    }

    /// Whether it is on disk; until that is known nothing, and the waker is woken once it may be.
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

    /// Sleeps until that is known. Nobody does who serves others.
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

//! [`Outcomes`]: a handle to the outcomes of blocks, for answers that wait for them.
//!
//! Every pending answer has a handle. If all of them shared one reference count, each append would
//! move its cache line between processors twice. So there is a reference count per stripe, each
//! thread uses its own stripe, and an answer usually ends on the thread on which it began.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use crate::shared::Shared;
use crate::ticket::{Stage, Status, Ticket};

/// Number of stripes. Threads beyond it share stripes.
const STRIPES: usize = 64;

static STRIPE_NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The stripe of this thread.
    static STRIPE: usize = STRIPE_NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
}

/// The outcomes of a journal's blocks. It does not keep the journal open: a journal that is dropped
/// writes what is queued, so that its tickets are decided.
#[derive(Clone, Debug)]
pub struct Outcomes(Arc<Stripe>);

/// The target of the handles of a stripe. Aligned so that no two reference counts share a cache
/// line.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe {
    shared: Arc<Shared>,
}

impl Outcomes {
    /// Returns whether a ticket's block has reached a stage.
    #[inline]
    pub fn status_at(&self, stage: Stage, ticket: Ticket) -> Status {
        let shard = self.shared().shard(ticket.shard);
        shard.publication.status(ticket, stage)
    }

    /// Wakes `waker` once when the ticket's block has reached a stage or never will. Returns the
    /// state now; unless that is pending, the waker is not stored.
    pub fn notify_at(&self, stage: Stage, ticket: Ticket, waker: &Waker) -> Status {
        let shard = self.shared().shard(ticket.shard);
        shard.publication.notify(ticket, stage, waker)
    }

    /// Sleeps until the ticket's block is committed or will never be.
    pub fn wait(&self, ticket: Ticket) -> Status {
        self.shared().shard(ticket.shard).publication.wait(ticket)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }
}

/// The handles of a journal, one per stripe.
#[derive(Clone, Debug)]
pub(crate) struct Stripes(Arc<[Outcomes]>);

impl Stripes {
    pub(crate) fn new(shared: &Arc<Shared>) -> Stripes {
        let stripe = |_| {
            let shared = shared.clone();
            Outcomes(Arc::new(Stripe { shared }))
        };
        Stripes((0..STRIPES).map(stripe).collect())
    }

    /// Returns a handle of this thread's stripe.
    pub(crate) fn own(&self) -> Outcomes {
        self.0[STRIPE.with(|stripe| *stripe)].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimulatedDisk;
    use crate::{Journal, Options};

    #[test]
    fn handles_of_a_thread_share_a_count_that_no_other_thread_has() {
        let disk = Arc::new(SimulatedDisk::new(1));
        let opened = Journal::open_stepped(disk, &Options::default()).unwrap();
        let journal = opened.journal;
        let address = |outcomes: &Outcomes| Arc::as_ptr(&outcomes.0) as usize;
        let (one, again) = (journal.outcomes(), journal.outcomes());
        assert_eq!(address(&one), address(&again));
        let other = std::thread::scope(|scope| {
            let other = scope.spawn(|| address(&journal.outcomes()));
            other.join().unwrap()
        });
        assert!(other.abs_diff(address(&one)) >= 128);
    }
}

//! A group of appends that share one sync.
//!
//! The line takes all blocks that wait when it wakes up. If the first append of a group woke it,
//! that append would get a sync of its own and the others would wait for the next. The same holds
//! for a block that is proposed to a consensus. A caller that
//! knows the extent of a group appends in a `Round`: the line is woken when the round ends.

use crate::ShardId;
use crate::guard::Guard;
use crate::journal::{Bounds, Journal};
use crate::outcomes::Outcomes;

/// A group of appends; dropping it wakes the line. Appends of a round may stay pending until then.
#[derive(Debug)]
pub struct Round {
    outcomes: Outcomes,
    bounds: Option<Bounds>,
}

impl Round {
    pub(crate) fn new(outcomes: Outcomes, bounds: Option<Bounds>) -> Round {
        Round { outcomes, bounds }
    }

    /// Returns whether it appends as this handle of a journal does: to the same journal and in the
    /// same reigns.
    pub fn is_of(&self, journal: &Journal) -> bool {
        std::ptr::eq(self.outcomes.shared(), &**journal.shared())
            && match (self.bounds.as_ref(), journal.bounds()) {
                (None, None) => true,
                (Some(own), Some(bounds)) => own.is_same(bounds),
                _ => false,
            }
    }

    /// Locks a shard like [`Journal::lock`](crate::Journal::lock), but wakes the line only at the
    /// end of the round.
    pub fn lock(&self, shard: ShardId, now_ms: u64) -> Guard<'_> {
        let reign = self.bounds.as_ref().map(|bounds| bounds.reign(shard));
        let shared = self.outcomes.shared();
        Guard::in_round(shared, shared.shard(shard), reign, now_ms)
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        let shared = self.outcomes.shared();
        shared.doorbell.wake_if_rung();
        shared.proposals.wake_if_rung();
    }
}

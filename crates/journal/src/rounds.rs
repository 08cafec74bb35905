//! The rounds that are under way, for which the line waits.
//!
//! A thread that serves many connections appends for one after the other, and ends their rounds
//! together. A line that took the blocks in the middle of such a pass would sync a part of it and
//! leave the rest to the next sync: on busy processors most syncs would be small, and each costs
//! the same as a large one. So the line waits until the pass has ended. It does not wait for rounds
//! that begin later, and never longer than a limit.
//!
//! Only the number of rounds matters, not which ones have ended: a round that began later may end
//! in place of an earlier one. Then a sync is smaller, and nothing else changes.

use std::sync::OnceLock;
use std::time::Duration;

use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicU64, Ordering};

/// Counters of begun and ended rounds, and the line that waits for them.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    begun: AtomicU64,
    ended: AtomicU64,
    /// The number of ended rounds that the line waits for; 0 if it does not wait.
    awaited: AtomicU64,
    line: OnceLock<Thread>,
}

impl Rounds {
    /// Counts a round that begins.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a round that ends, and wakes the line if it was the last one that it waits for.
    pub(crate) fn end(&self) {
        let ended = self.ended.fetch_add(1, Ordering::SeqCst) + 1;
        if self.awaited.load(Ordering::SeqCst) == ended {
            // The line registers in `line` before it sets `awaited`.
            self.line.get().inspect(|line| line.unpark());
        }
    }

    /// Waits until as many rounds have ended as have begun, for at most `limit`; it may return
    /// early. Only one thread may call it.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let begun = self.begun.load(Ordering::SeqCst);
        if self.has_ended(begun) {
            return;
        }
        self.line.get_or_init(thread::current);
        self.awaited.store(begun, Ordering::SeqCst);
        if !self.has_ended(begun) {
            match limit {
                Some(limit) => thread::park_timeout(limit),
                None => thread::park(),
            }
        }
        self.awaited.store(0, Ordering::SeqCst);
    }

    fn has_ended(&self, begun: u64) -> bool {
        self.ended.load(Ordering::SeqCst) >= begun
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn wait_ends_without_rounds_and_after_its_limit() {
        let rounds = super::Rounds::default();
        rounds.wait(None);
        rounds.begin();
        rounds.wait(Some(std::time::Duration::from_micros(1)));
        assert_eq!(rounds.awaited.load(super::Ordering::SeqCst), 0);
        rounds.end();
        rounds.wait(None);
    }
}

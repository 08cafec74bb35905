//! Snapshots of an agent's deliveries, and their restoration from the journal.
//!
//! A snapshot contains the events up to which the agent was fed, and the messages of those that it
//! had not answered. Changes after the snapshot concern these messages and later ones. Later events
//! are fed again, starting at the snapshot's events, and answered messages are skipped.

use super::{Change, Deliveries, PendingMessages};
use crate::record::{AgentState, PendingState};

impl Deliveries {
    /// Records that all events of a partition before `next_event` were fed.
    pub fn fed(&mut self, partition: u16, next_event: u64) {
        let cursor = self.cursors.entry(partition).or_default();
        *cursor = next_event.max(*cursor);
    }

    /// Returns the next event of a partition to feed.
    pub fn next_event(&self, partition: u16) -> u64 {
        self.cursors.get(&partition).copied().unwrap_or(0)
    }

    /// Returns a snapshot, which makes earlier changes obsolete. `settings` are the shell's. After
    /// a restart, all events that were fed before must be fed again first.
    pub fn snapshot(&mut self, settings: Vec<u8>) -> AgentState {
        self.answered.clear();
        let pending = self.entries.iter().map(|(conversation, entry)| {
            let state = PendingState {
                from_seq: entry.from_seq,
                to_seq: entry.to_seq,
                attempts: entry.attempts,
                interrupts: entry.interrupts,
            };
            (*conversation, state)
        });
        AgentState {
            options: self.options,
            settings,
            cursors: self.cursors.clone(),
            pending: pending.collect(),
            dead: self.dead.clone(),
        }
    }

    /// Restores an agent from a snapshot. Afterwards [`Deliveries::restore`] must be called for
    /// each later change, and the events from [`Deliveries::next_event`] on must be fed. Pending
    /// messages are due at once.
    pub fn load(state: &AgentState, now_ms: u64) -> Self {
        let mut deliveries = Self::new(state.options);
        deliveries.cursors.clone_from(&state.cursors);
        deliveries.dead.clone_from(&state.dead);
        for (conversation, pending) in &state.pending {
            let entry = PendingMessages {
                attempts: pending.attempts,
                interrupts: pending.interrupts,
                ..PendingMessages::new(pending.from_seq, pending.to_seq, now_ms)
            };
            deliveries.queue_now(*conversation, entry, now_ms);
        }
        deliveries
    }

    /// Applies a journaled change, in order.
    pub fn restore(&mut self, change: &Change, now_ms: u64) {
        match *change {
            Change::Answered {
                conversation,
                through_seq,
            } => self.restore_done(conversation, through_seq, now_ms),
            Change::Again {
                conversation,
                attempts,
                interrupts,
            } => {
                // An unknown conversation belongs to an event that will be fed again: it starts
                // with no attempts.
                if let Some(entry) = self.entries.get_mut(&conversation) {
                    entry.attempts = attempts;
                    entry.interrupts = interrupts;
                }
            }
            Change::Dead {
                conversation,
                letter,
            } => {
                self.dead.insert(conversation, letter);
                self.restore_done(conversation, letter.to_seq, now_ms);
            }
            Change::Revived { conversation } => self.restore_revived(conversation, now_ms),
            Change::Discarded { conversation } => {
                self.dead.remove(&conversation);
            }
            Change::Forgotten { conversation } => {
                self.forget(conversation);
                self.answered.insert(conversation, u64::MAX);
            }
        }
    }

    fn restore_done(&mut self, conversation: u64, through_seq: u64, now_ms: u64) {
        let answered = self.answered.entry(conversation).or_default();
        *answered = through_seq.max(*answered);
        self.unqueue(conversation);
        let Some(entry) = self.entries.remove(&conversation) else {
            return;
        };
        if entry.to_seq > through_seq {
            let entry = PendingMessages::new(through_seq + 1, entry.to_seq, now_ms);
            self.queue_now(conversation, entry, now_ms);
        }
    }

    pub(super) fn restore_revived(&mut self, conversation: u64, now_ms: u64) {
        let Some(letter) = self.dead.remove(&conversation) else {
            return;
        };
        self.unqueue(conversation);
        let before = self.entries.remove(&conversation);
        let to_seq = before.map_or(letter.to_seq, |entry| entry.to_seq.max(letter.to_seq));
        let from_seq = before.map_or(letter.from_seq, |it| it.from_seq.min(letter.from_seq));
        let entry = PendingMessages::new(from_seq, to_seq, now_ms);
        self.queue_now(conversation, entry, now_ms);
    }

    /// Queues a conversation as due at once.
    fn queue_now(&mut self, conversation: u64, entry: PendingMessages, now_ms: u64) {
        let long_ago_ms = now_ms.saturating_sub(self.options.max_wait_ms);
        let entry = PendingMessages {
            since_ms: long_ago_ms,
            ..entry
        };
        self.wait(conversation, entry, 0);
    }
}

//! Dead letters: messages that reached the limit on deliveries.
//!
//! They stay in the mailbox, and count against its limits, until they are acknowledged by hand,
//! revived or expired.

use super::{Entry, Mailbox, Stage};
use crate::record::Note;
use crate::types::Cause;

impl<S: Clone + PartialEq> Mailbox<S> {
    /// Revives a dead letter: it is delivered again, with a full number of deliveries. Returns
    /// false if there is none at that offset.
    pub fn revive(&mut self, offset: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&offset) else {
            return false;
        };
        let Stage::Dead(_) = entry.stage else {
            return false;
        };
        entry.forgiven = entry.deliveries;
        entry.stage = Stage::Due {
            due_ms: 0,
            not_to: None,
        };
        self.dead -= 1;
        self.due.insert((0, offset));
        self.notes.push(Note::Revived { offset });
        true
    }

    /// Revives all dead letters and returns their number.
    pub fn revive_all(&mut self) -> usize {
        let offsets = self.dead_offsets();
        for offset in &offsets {
            self.revive(*offset);
        }
        offsets.len()
    }

    /// Returns the number of dead letters.
    pub fn dead(&self) -> usize {
        self.dead
    }

    /// Returns and clears the number of new dead letters.
    pub fn take_died(&mut self) -> u64 {
        std::mem::take(&mut self.died)
    }

    fn dead_offsets(&self) -> Vec<u64> {
        let is_dead = |stage: &Stage<S>| matches!(stage, Stage::Dead(_));
        let dead = self
            .entries
            .iter()
            .filter(|(_, entry)| is_dead(&entry.stage));
        dead.map(|(offset, _)| *offset).collect()
    }

    /// Returns true if a message reached the limit on deliveries.
    pub(super) fn is_spent(&self, offset: u64) -> bool {
        let entry = self.entries.get(&offset);
        entry.is_some_and(|entry| entry.is_spent(self.limits.deliveries_max))
    }

    /// Makes a message a dead letter. It must not be in a queue.
    pub(super) fn make_dead(&mut self, offset: u64, cause: Cause) {
        let Some(entry) = self.entries.get_mut(&offset) else {
            return;
        };
        let before = std::mem::replace(&mut entry.stage, Stage::Dead(cause));
        let sender = entry.sender;
        self.end_delivery(sender, &before);
        self.dead += 1;
        self.died += 1;
        self.notes.push(Note::Dead { offset, cause });
    }
}

impl<S> Entry<S> {
    /// Returns true if the deliveries, since it was last revived, have reached the limit.
    pub(super) fn is_spent(&self, deliveries_max: u32) -> bool {
        let deliveries = self.deliveries.saturating_sub(self.forgiven);
        deliveries_max > 0 && deliveries >= deliveries_max
    }
}

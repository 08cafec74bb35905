//! Dead letters: messages that an agent failed to answer, at most one letter per conversation.

use super::{Change, DeadLetter, Deliveries, DeliveryError};

impl Deliveries {
    /// Returns the dead letters, by conversation.
    pub fn dead(&self) -> impl ExactSizeIterator<Item = (u64, &DeadLetter)> + '_ {
        self.dead.iter().map(|(at, letter)| (*at, letter))
    }

    /// Makes the messages of a dead letter pending again; the next call is due at once.
    pub fn revive(&mut self, conversation: u64, now_ms: u64) -> Result<Change, DeliveryError> {
        if !self.dead.contains_key(&conversation) {
            return Err(DeliveryError::Missing);
        }
        if self.is_calling(conversation) {
            return Err(DeliveryError::Busy);
        }
        let max = self.options.pending_max;
        if !self.entries.contains_key(&conversation) && self.entries.len() >= max as usize {
            return Err(DeliveryError::Full { max });
        }
        self.restore_revived(conversation, now_ms);
        Ok(Change::Revived { conversation })
    }

    /// Removes a dead letter.
    pub fn discard(&mut self, conversation: u64) -> Result<Change, DeliveryError> {
        match self.dead.remove(&conversation) {
            Some(_) => Ok(Change::Discarded { conversation }),
            None => Err(DeliveryError::Missing),
        }
    }

    /// Adds a dead letter. An earlier one of the conversation is merged into it.
    pub(super) fn add_dead_letter(&mut self, conversation: u64, letter: DeadLetter) -> DeadLetter {
        let before = self.dead.get(&conversation);
        let from_seq = before.map_or(letter.from_seq, |it| it.from_seq.min(letter.from_seq));
        let letter = DeadLetter { from_seq, ..letter };
        self.dead.insert(conversation, letter);
        letter
    }
}

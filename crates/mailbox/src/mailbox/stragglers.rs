//! Messages that keep on disk what was written behind them and is done with.
//!
//! A stream can only be cut off at its front. So a message that nobody acknowledges would keep
//! everything behind it: when more than half of that is dead, the oldest message is written once
//! more at the end, under the offset by which everybody knows it.

use super::{Mailbox, Stage};
use crate::terms::{Standing, Straggler};

/// Bytes of a stream for which nothing is written once more.
const SLACK: u64 = 1 << 20;

impl<S: Clone + PartialEq> Mailbox<S> {
    /// The oldest record that is still needed, if there is any.
    pub fn oldest(&self) -> Option<u64> {
        let unmoved = self.entries.range(self.moved_end..).next();
        let moved = self.moved.keys().next();
        unmoved
            .map(|(offset, _)| *offset)
            .into_iter()
            .chain(moved.copied())
            .min()
    }

    /// The message to write once more when the stream takes `held` bytes: it is to be appended, and
    /// [`moved`](Self::moved) said, before anything is cut off. As more than half is dead then,
    /// writing everything that lives once more costs no more than what has died.
    pub fn straggler(&self, held: u64) -> Option<Straggler> {
        if held <= self.bytes.saturating_mul(2).saturating_add(SLACK) {
            return None;
        }
        let record = self.oldest()?;
        let offset = self.moved.get(&record).copied().unwrap_or(record);
        let entry = self.entries.get(&offset)?;
        let dead = match &entry.stage {
            // It cannot be read yet.
            Stage::Unsynced => return None,
            Stage::Dead(cause) => Some(*cause),
            Stage::First | Stage::Unanswered { .. } | Stage::Due { .. } => None,
        };
        Some(Straggler {
            offset,
            record,
            standing: Standing {
                deliveries: entry.deliveries,
                forgiven: entry.forgiven,
                dead,
            },
        })
    }

    /// A straggler was appended at `record`.
    pub fn moved(&mut self, offset: u64, record: u64) {
        if let Some(entry) = self.entries.get_mut(&offset) {
            self.moved.remove(&entry.record);
            entry.record = record;
            self.moved.insert(record, offset);
            self.moved_end = self.moved_end.max(offset + 1);
        }
    }
}

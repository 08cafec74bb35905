//! Stragglers: old messages that prevent the trimming of finished ones behind them.
//!
//! A stream can only be trimmed at its front, so an old unacknowledged message would retain
//! everything after it. When more than half of that is dead, the oldest message is rewritten at the
//! end of the stream. It is still identified by its original offset.

use super::{Mailbox, Stage};
use crate::types::{MessageState, Straggler};

/// Bytes of a stream below which nothing is rewritten.
const SLACK: u64 = 1 << 20;

impl<S: Clone + PartialEq> Mailbox<S> {
    /// Returns the offset of the oldest record that is still needed, if any.
    pub fn oldest(&self) -> Option<u64> {
        let unmoved = self.entries.range(self.moved_end..).next();
        let moved = self.moved.keys().next();
        unmoved
            .map(|(offset, _)| *offset)
            .into_iter()
            .chain(moved.copied())
            .min()
    }

    /// Returns the message to rewrite if the stream has `held` bytes. Append it, then call
    /// [`moved`](Self::moved), before the stream is trimmed. As more than half of the stream is
    /// dead then, rewriting all live messages costs no more than the dead ones take.
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
            state: MessageState {
                deliveries: entry.deliveries,
                forgiven: entry.forgiven,
                dead,
            },
        })
    }

    /// Records that a straggler was appended at `record`.
    pub fn moved(&mut self, offset: u64, record: u64) {
        if let Some(entry) = self.entries.get_mut(&offset) {
            self.moved.remove(&entry.record);
            entry.record = record;
            self.moved.insert(record, offset);
            self.moved_end = self.moved_end.max(offset + 1);
        }
    }
}

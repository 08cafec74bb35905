//! Restoring a mailbox from its stream.

use super::{Mailbox, Stage};
use crate::ids::{IDS_KEPT, WriteId};
use crate::record::Note;
use crate::types::{Cause, MessageState, NewMessage};

impl<S: Clone + PartialEq> Mailbox<S> {
    /// Restores a write. Restore all records in the order of the stream, before any other call, and
    /// then call [`Mailbox::restored`].
    pub fn restore(&mut self, written: NewMessage<'_>) {
        self.restore_id(written.offset, written.id);
        self.insert(written);
    }

    /// Restores a write that was rewritten at `record`, with its state then. The original write may
    /// have been trimmed or not.
    pub fn restore_moved(&mut self, written: NewMessage<'_>, record: u64, state: MessageState) {
        let offset = written.offset;
        if !self.entries.contains_key(&offset) {
            self.insert(written);
        }
        self.moved(offset, record);
        if let Some(entry) = self.entries.get_mut(&offset) {
            entry.deliveries = state.deliveries;
            entry.forgiven = state.forgiven;
        }
        self.restore_dead(offset, state.dead);
    }

    /// Restores a note. A note about an unknown message is ignored.
    pub fn restore_note(&mut self, note: Note) {
        match note {
            Note::Handed { offset, deliveries } => {
                if let Some(entry) = self.entries.get_mut(&offset) {
                    entry.deliveries = deliveries;
                }
            }
            Note::Left { offset } => {
                self.remove(offset);
            }
            Note::Dead { offset, cause } => self.restore_dead(offset, Some(cause)),
            Note::Revived { offset } => {
                self.restore_dead(offset, None);
                if let Some(entry) = self.entries.get_mut(&offset) {
                    entry.forgiven = entry.deliveries;
                }
            }
        }
    }

    fn restore_dead(&mut self, offset: u64, cause: Option<Cause>) {
        let Some(entry) = self.entries.get_mut(&offset) else {
            return;
        };
        let stage = cause.map_or(Stage::Unsynced, Stage::Dead);
        if let Stage::Dead(_) = std::mem::replace(&mut entry.stage, stage) {
            self.dead -= 1;
        }
        self.dead += usize::from(cause.is_some());
    }

    /// Restores an id.
    pub fn restore_id(&mut self, offset: u64, id: Option<WriteId>) {
        self.restored_ids.insert(offset, id);
        if self.restored_ids.len() > IDS_KEPT {
            self.restored_ids.pop_first();
        }
    }

    /// Ends the restore. Messages that were in delivery are delivered again, unless they have
    /// reached the limit on deliveries; the rest follow in order.
    pub fn restored(&mut self) {
        self.notes.clear();
        self.ids.merge(std::mem::take(&mut self.restored_ids));
        let mut spent = Vec::new();
        for (offset, entry) in &mut self.entries {
            match &entry.stage {
                Stage::Dead(_) => {}
                _ if entry.is_spent(self.limits.deliveries_max) => spent.push(*offset),
                _ if entry.deliveries == 0 => {
                    entry.stage = Stage::First;
                    self.senders.wait(entry.sender, *offset);
                }
                _ => {
                    entry.stage = Stage::Due {
                        due_ms: 0,
                        not_to: None,
                    };
                    self.due.insert((0, *offset));
                }
            }
        }
        for offset in spent {
            self.make_dead(offset, Cause::Unanswered);
        }
    }
}

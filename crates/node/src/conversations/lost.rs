//! Drafts without an author: the content of each becomes a message.

use std::sync::Arc;

use conversations::draft::{Draft, lost_status};

use super::Refusal;
use super::drafts::{Assemble, Finished, Open};
use super::slot::Room;
use crate::node::{Inner, Node};
use crate::store::Store;

impl Store {
    /// Turns drafts whose authors are gone into messages.
    pub(super) fn close_lost(&self, inner: &Inner, name: &str, room: &mut Room) {
        let Some(assembler) = self.rooms.assembler.get() else {
            return;
        };
        let lost = room.drafts.iter().filter(|open| open.is_lost);
        let lost: Vec<_> = lost.map(|open| open.number).collect();
        for number in lost {
            let Some(open) = room.open_draft(number) else {
                continue;
            };
            let status = lost_status(&open.draft);
            let assembled = assembler.assemble(&mut lines(&open.draft));
            let finished = Finished {
                status,
                tokens: None,
                assembled: &assembled,
            };
            // A message that cannot be written now is written when there is room.
            if self
                .close_draft(inner, name, room, number, finished)
                .is_err()
            {
                return;
            }
        }
    }
}

/// Returns the chunks of a draft.
fn lines(draft: &Draft) -> impl Iterator<Item = &[u8]> {
    let lines = draft.lines().split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| &line[..line.len() - 1])
}

impl Node {
    /// Enables drafts, and sets the assembler of messages for drafts whose authors are gone. Drafts
    /// that were open when the node stopped become messages now; returns their number. Only the
    /// first call sets the assembler.
    pub fn assemble_with(&self, assembler: Arc<dyn Assemble>) -> Result<usize, Refusal> {
        let Some(store) = &self.inner.store else {
            return Ok(0);
        };
        if store.rooms.assembler.set(assembler).is_err() {
            return Ok(0);
        }
        let Some(conversations) = self.conversations() else {
            return Ok(0);
        };
        let mut count = 0;
        for lost in store.lost_drafts()? {
            count += 1;
            let Some(name) = store.conversation_name(lost.conversation) else {
                // The node failed before the draft's conversation was durable.
                store.log_end(lost.shard, lost.lost.number, &self.inner)?;
                continue;
            };
            conversations.with_room(&name, |slot, room| {
                store.rooms.draft_in(slot);
                room.engine.draft_opened(&lost.lost.id);
                room.drafts.push(Open::lost(lost.lost));
                store.close_lost(&self.inner, &name, room);
            })?;
        }
        Ok(count)
    }
}

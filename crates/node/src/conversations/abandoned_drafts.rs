//! Drafts without an author: the content of each becomes a message.

use std::sync::atomic::Ordering;

use conversations::draft::{Draft, lost_status};

use super::drafts::{Finished, Open};
use super::slot::Room;
use super::{Conversations, Refusal};
use crate::node::{Inner, Node};
use crate::store::Store;

impl Store {
    /// Turns drafts whose authors are gone into messages.
    pub(super) fn close_lost(&self, inner: &Inner, name: &str, room: &mut Room) {
        let Some(assembler) = &self.rooms.assembler else {
            return;
        };
        let lost = room.drafts.iter().filter(|open| open.is_lost);
        let lost: Vec<_> = lost.map(|open| open.number).collect();
        for number in lost {
            let Some(open) = room.open_draft(number) else {
                continue;
            };
            let status = lost_status(&open.draft);
            let assembled = assembler.assemble(&self.rooms.options.limits, &mut lines(&open.draft));
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
    /// Turns the drafts that the last shutdown interrupted into messages.
    pub(crate) fn convert_lost_drafts(&self) -> Result<(), Refusal> {
        let Some(conversations) = self.conversations() else {
            return Ok(());
        };
        let store = conversations.store;
        if store.rooms.assembler.is_none() {
            return Ok(());
        }
        for lost in store.lost_drafts()? {
            store.rooms.drafts_recovered.fetch_add(1, Ordering::Relaxed);
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
        Ok(())
    }
}

impl Conversations<'_> {
    /// Returns the number of drafts that the last shutdown interrupted and that became messages
    /// when the node was opened.
    pub fn drafts_recovered(&self) -> usize {
        self.store.rooms.drafts_recovered.load(Ordering::Relaxed)
    }
}

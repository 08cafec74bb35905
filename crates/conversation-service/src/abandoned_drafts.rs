//! Drafts without an author: the content of each becomes a message.

use std::sync::atomic::Ordering;

use conversations::draft::{Draft, lost_status};

use super::drafts::DraftResult;
use super::open_draft::OpenDraft;
use super::slot::Room;
use super::{ConversationError, Conversations};

impl Conversations {
    /// Turns drafts whose authors are gone into messages.
    pub(super) fn close_lost(&self, name: &str, room: &mut Room) {
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
            let finished = DraftResult {
                status,
                tokens: None,
                assembled: &assembled,
            };
            // A message that cannot be written now is written when there is room.
            if self.close_draft(name, room, number, finished).is_err() {
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

impl Conversations {
    /// Turns the drafts that the last shutdown interrupted into messages.
    pub(super) fn convert_lost_drafts(&self) -> Result<(), ConversationError> {
        if self.rooms.assembler.is_none() {
            return Ok(());
        }
        for lost in self.lost_drafts()? {
            self.rooms.drafts_recovered.fetch_add(1, Ordering::Relaxed);
            let Some(name) = self.conversation_name(lost.conversation) else {
                // The node failed before the draft's conversation was durable.
                self.log_end(lost.shard, lost.lost.number)?;
                continue;
            };
            self.with_room(&name, |slot, room| {
                self.rooms.draft_in(slot);
                room.engine.draft_opened(&lost.lost.id);
                room.drafts.push(OpenDraft::lost(lost.lost));
                self.close_lost(&name, room);
            })?;
        }
        Ok(())
    }
}

impl Conversations {
    /// Returns the number of drafts that the last shutdown interrupted and that became messages
    /// when the node was opened.
    pub fn drafts_recovered(&self) -> usize {
        self.rooms.drafts_recovered.load(Ordering::Relaxed)
    }
}

//! Expiry: conversations are erased a given time after their last message.
//!
//! Any access to an expired conversation erases it first, under its lock, so no client sees it any
//! more, even before the background sweep.

use conversations::{Change, Lifecycle};
use model::Name;
use store::Location;

use super::slot::Room;
use super::{ConversationError, Conversations};

impl Conversations {
    /// Erases the conversation if it has expired; returns whether it is erased.
    pub fn expire(&self, name: &Name) -> Result<bool, ConversationError> {
        // The access itself erases an expired conversation.
        self.with_existing(name, |_, room, _| {
            Ok(room.engine.state().lifecycle == Lifecycle::Erased)
        })
    }

    /// Erases the conversation if it has expired.
    pub(super) fn meet(&self, name: &str, room: &mut Room) -> Result<(), ConversationError> {
        if !self.is_room_over(room, || self.platform.expiry_ms()) {
            return Ok(());
        }
        let now_ms = self.platform.unix_ms();
        let limits = &self.options().limits;
        let erased = room
            .engine
            .decide_change(None, &Change::Erase, limits, now_ms)
            .map_err(ConversationError::from)
            .and_then(|update| self.update_room(room, name, update, now_ms));
        // If the erase cannot be written now, the conversation is treated as gone anyway.
        erased.map_err(|_| ConversationError::Gone)
    }
}

impl Conversations {
    fn is_room_over(&self, room: &Room, expiry_ms: impl FnOnce() -> u64) -> bool {
        let state = room.engine.state();
        let ttl_ms = state.settings.ttl_ms;
        if ttl_ms == 0 || state.lifecycle == Lifecycle::Erased {
            return false;
        }
        // A message that is being written may be lost.
        if !self.is_all_durable(room.location) {
            return false;
        }
        let active_ms = room.said_ms.max(state.active_ms());
        expiry_ms() >= active_ms.saturating_add(ttl_ms)
    }

    /// Returns whether all messages are durable.
    fn is_all_durable(&self, location: Option<Location>) -> bool {
        let messages = location.map(|at| self.store.journal.stream(at.shard, at.stream));
        match messages {
            None => false,
            Some(messages) => messages.is_none_or(|it| it.next_durable == it.next),
        }
    }
}

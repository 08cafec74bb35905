//! Conversations that end by themselves: so long after their last message.
//!
//! Whoever meets one that is over erases it there and then, under its lock, before anything else is
//! decided: nobody is shown or told anything of it any more, whenever the background comes by.

use conversations::{Change, Lifecycle};
use model::Name;

use super::slot::Room;
use super::{Conversations, Refusal};
use crate::store::{Location, Store};

impl Conversations<'_> {
    /// Erases the conversation if it is over. Whether it is erased now.
    pub(crate) fn expire(&self, name: &Name) -> Result<bool, Refusal> {
        // To meet it is enough.
        self.with_existing(name, |_, room, _| {
            Ok(room.engine.state().lifecycle == Lifecycle::Erased)
        })
    }

    /// Erases the conversation if it is over.
    pub(super) fn meet(&self, name: &str, room: &mut Room) -> Result<(), Refusal> {
        if !self.store.is_room_over(room, || self.inner.expiry_ms()) {
            return Ok(());
        }
        let now_ms = self.unix_ms();
        let limits = &self.options().limits;
        let erased = room
            .engine
            .decide_change(None, &Change::Erase, limits, now_ms)
            .map_err(Refusal::from)
            .and_then(|update| self.store.update_room(room, name, update, now_ms));
        // What cannot be erased now is over all the same.
        erased.map_err(|_| Refusal::gone())
    }
}

impl Store {
    fn is_room_over(&self, room: &Room, expiry_ms: impl FnOnce() -> u64) -> bool {
        let state = room.engine.state();
        let ttl_ms = state.settings.ttl_ms;
        if ttl_ms == 0 || state.lifecycle == Lifecycle::Erased {
            return false;
        }
        // What is just being written may come to nothing.
        if !self.is_all_durable(room.location) {
            return false;
        }
        let active_ms = room.said_ms.max(state.created_ms);
        expiry_ms() >= active_ms.saturating_add(ttl_ms)
    }

    /// Whether everything that was said is on disk.
    fn is_all_durable(&self, location: Option<Location>) -> bool {
        let messages = location.map(|at| self.journal.stream(at.shard, at.stream));
        match messages {
            None => false,
            Some(messages) => messages.is_none_or(|it| it.next_durable == it.next),
        }
    }
}

//! Periodic work on loaded mailboxes, and their unloading.

use std::sync::Arc;

use journal::Status;

use super::Mailboxes;
use super::hand_out::NOBODY;
use super::slot::{Slot, Stage, State};

/// Time without use after which a mailbox is unloaded, in nanoseconds.
const IDLE_NS: u64 = 10_000_000_000;

impl Mailboxes {
    /// Processes every loaded mailbox: delivers due messages, removes expired ones, and unloads
    /// unused mailboxes. Returns true as long as any mailbox is loaded.
    pub(crate) fn sweep(self: &Arc<Self>) -> bool {
        let mut is_any_left = self.look_at_idle();
        for slot in self.loaded.all() {
            is_any_left |= self.sweep_one(&slot);
        }
        is_any_left
    }

    /// Processes a mailbox. Returns true if it stays loaded.
    fn sweep_one(self: &Arc<Self>, slot: &Arc<Slot>) -> bool {
        let mut dirty = Vec::new();
        let mut stage = slot.stage.lock();
        let is_idle = match &mut *stage {
            Stage::Loaded(state) => {
                state.mailbox.expire(self.platform.expiry_ms());
                self.end_leases(state);
                self.hand_out(slot, state, &mut dirty);
                self.is_idle(state)
            }
            Stage::New => {
                drop(stage);
                self.begin_loading(&slot.name);
                return true;
            }
            Stage::Loading(_) => return true,
            Stage::Gone => return false,
        };
        drop(stage);
        self.finish(slot, dirty);
        !(is_idle && self.unload(slot))
    }

    fn is_idle(&self, state: &State) -> bool {
        let mailbox = &state.mailbox;
        let is_used = self.platform.now_ns().saturating_sub(state.used_ns) < IDLE_NS;
        let is_pulled = state.pulls.has_takers() || mailbox.in_flight() > 0;
        if is_used || is_pulled || mailbox.is_unsynced() {
            return false;
        }
        let is_synced = |ticket| self.store.journal.status(ticket) != Status::Pending;
        let waits = || {
            let table = self.router.table.read();
            table.all(&state.target, NOBODY).next().is_some()
        };
        state.stream.ticket.is_none_or(is_synced) && (mailbox.live() == 0 || !waits())
    }

    /// Unloads a mailbox. Returns false if it stays, because it was used meanwhile or had to write.
    fn unload(&self, slot: &Arc<Slot>) -> bool {
        let mut stage = slot.stage.lock();
        let is_over = match &mut *stage {
            Stage::Loaded(state) => {
                let now_ms = self.platform.unix_ms();
                self.is_idle(state) && !state.shorten_before_unload(&self.store.journal, now_ms)
            }
            Stage::New | Stage::Loading(_) | Stage::Gone => false,
        };
        if !is_over {
            return false;
        }
        if let Stage::Loaded(state) = std::mem::replace(&mut *stage, Stage::Gone) {
            if let Some(location) = state.location {
                let next_ms = state.mailbox.earliest_expiry_ms();
                self.idle.lock().rests(location.stream, next_ms);
            }
            self.backlogs.note(&slot.name, &state);
            self.router.table.write().release(state.target);
        }
        drop(stage);
        self.forget(slot);
        true
    }
}

//! Mailboxes that continue after a write became durable, or after a new subscription.

use std::sync::Arc;

use super::Store;
use super::directory::Kind;
use super::mailbox::Slot;
use super::write::AcceptedWrite;
use crate::node::Inner;
use crate::peer::Peer;
use crate::turn::Turn;

impl Turn<'_> {
    /// Lets the mailbox of a durable write continue, at the end of the turn.
    pub fn deliver_written(&mut self, write: AcceptedWrite) {
        let written = &mut self.local.written;
        if !written.iter().any(|known| Arc::ptr_eq(known, &write.slot)) {
            written.push(write.slot);
        }
    }
}

impl Store {
    /// Continues a mailbox after writes to it have become durable.
    pub(crate) fn continue_mailbox(
        &self,
        inner: &Arc<Inner>,
        slot: &Arc<Slot>,
        dirty: &mut Vec<Arc<Peer>>,
    ) {
        // A mailbox that was unloaded meanwhile had no pending writes.
        if let Some(mut state) = super::load::loaded(slot.stage.lock()) {
            self.hand_out(inner, slot, &mut state, dirty);
            drop(state);
            self.fetch(inner, slot);
        }
    }

    /// Delivers the waiting messages of a name after a subscription to it.
    pub(crate) fn deliver_to_new_subscriber(
        &self,
        inner: &Arc<Inner>,
        base: &str,
        dirty: &mut Vec<Arc<Peer>>,
    ) {
        if self.find(Kind::Mailbox, base).is_none() {
            return;
        }
        let welcomed = self.with_mailbox(inner, base, |slot, state| {
            self.hand_out(inner, slot, state, dirty);
            slot.clone()
        });
        match welcomed {
            Ok(Some(slot)) => self.fetch(inner, &slot),
            Ok(None) => self.begin_loading(inner, base),
            // Writers to the mailbox and administrators get the error.
            Err(_) => inner.platform.counters.count(platform::Counter::Unreadable),
        }
    }
}

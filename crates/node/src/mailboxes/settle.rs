//! Mailboxes that continue after a write became durable, or after a new subscription.

use std::sync::Arc;

use store::Kind;

use super::Mailboxes;
use super::mailbox::Slot;
use super::write::AcceptedWrite;
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

impl Mailboxes {
    /// Continues a mailbox after writes to it have become durable.
    pub(crate) fn continue_mailbox(self: &Arc<Self>, slot: &Arc<Slot>, dirty: &mut Vec<Arc<Peer>>) {
        // A mailbox that was unloaded meanwhile had no pending writes.
        if let Some(mut state) = super::load::loaded(slot.stage.lock()) {
            self.hand_out(slot, &mut state, dirty);
            drop(state);
            self.fetch(slot);
        }
    }

    /// Delivers the waiting messages of a name after a subscription to it.
    pub(crate) fn deliver_to_new_subscriber(
        self: &Arc<Self>,
        base: &str,
        dirty: &mut Vec<Arc<Peer>>,
    ) {
        if self.store.find(Kind::Mailbox, base).is_none() {
            return;
        }
        let welcomed = self.with_mailbox(base, |slot, state| {
            self.hand_out(slot, state, dirty);
            slot.clone()
        });
        match welcomed {
            Ok(Some(slot)) => self.fetch(&slot),
            Ok(None) => self.begin_loading(base),
            // Writers to the mailbox and administrators get the error.
            Err(_) => self.platform.counters.count(platform::Counter::Unreadable),
        }
    }
}

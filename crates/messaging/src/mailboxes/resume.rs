//! Deliveries that resume after a write became durable, or after a new subscription.

use std::sync::Arc;

use platform::Counter;
use store::Kind;

use super::Mailboxes;
use super::slot::Slot;
use crate::peer::Peer;

impl Mailboxes {
    /// Continues a mailbox after writes to it have become durable.
    pub(crate) fn continue_mailbox(self: &Arc<Self>, slot: &Arc<Slot>, dirty: &mut Vec<Arc<Peer>>) {
        // A mailbox that was unloaded meanwhile had no pending writes.
        if let Some(mut state) = slot.lock_loaded() {
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
        let resumed = self.with_mailbox(base, |slot, state| {
            self.hand_out(slot, state, dirty);
            slot.clone()
        });
        match resumed {
            Ok(Some(slot)) => self.fetch(&slot),
            Ok(None) => self.begin_loading(base),
            // Writers to the mailbox and administrators get the error.
            Err(_) => self.platform.counters.count(Counter::Unreadable),
        }
    }
}

//! The work of a connection's task before it suspends.

use std::sync::Arc;
use std::task::Waker;

use super::Store;
use super::answers::DueEntry;
use super::directory::Kind;
use super::mailbox::Slot;
use crate::node::Inner;
use crate::peer::Peer;
use crate::turn::Turn;

impl Turn<'_> {
    /// Implements [`Connection::settle`](crate::Connection::settle).
    pub(crate) fn settle(mut self, task: &Waker) -> bool {
        let inner = self.inner;
        let Some(store) = &inner.store else {
            return false;
        };
        // Requests that completed on other threads may be durable already.
        let is_cold_unread = self.look_after_cold(task);
        let mut slots: Vec<Arc<Slot>> = Vec::new();
        while let Some(due) = self.local.answers.next(&store.journal, task) {
            let (waiting, is_durable) = match due {
                DueEntry::Answer {
                    waiting,
                    is_durable,
                } => (waiting, is_durable),
                DueEntry::Call {
                    tag,
                    call,
                    is_charged,
                } => {
                    self.let_go(tag, call, is_charged);
                    continue;
                }
            };
            let (mut details, mut text) = ([0; 8], String::new());
            let outgoing = waiting.outgoing(is_durable, &mut details, &mut text);
            if let crate::Outgoing::Failure { failure, .. } = &outgoing {
                inner.counters.count_failure(failure.code);
            }
            self.answer(outgoing);
            if let Some(slot) = waiting.slot
                && !slots.iter().any(|known| Arc::ptr_eq(known, &slot))
            {
                slots.push(slot);
            }
        }
        // The locks taken below come before the table in the lock order.
        self.table = None;
        for slot in slots {
            store.continue_mailbox(inner, &slot, &mut self.local.dirty);
        }
        let is_unread = self.look_after_reads(task) || is_cold_unread;
        (!self.local.followers.is_empty() && self.look_after_followers(store, task)) || is_unread
    }
}

impl Store {
    /// Continues a mailbox after writes to it may have become durable.
    fn continue_mailbox(&self, inner: &Arc<Inner>, slot: &Arc<Slot>, dirty: &mut Vec<Arc<Peer>>) {
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
            Err(_) => inner.counters.count(crate::Counter::Unreadable),
        }
    }
}

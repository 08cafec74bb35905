//! A turn: the frames from one read of a connection, decided on the thread that read them.
//!
//! A turn read-locks the routing table at most once, and flushes each receiver once, at its end. The
//! outcomes of the client's own requests are returned, and its listener answers them; messages for
//! other clients are pushed into their inboxes.

use std::sync::Arc;

use access::Principal;
use parking_lot::RwLockReadGuard;
use platform::Counter;
use platform::RequestContext;
use routing::Table;

use crate::local::Local;
use crate::messaging::Messaging;
use crate::outlet::Outgoing;
use crate::peer::Peer;

/// A batch of frames in progress. It ends with [`Turn::finish`] or when it is dropped.
pub struct Turn<'a> {
    pub(crate) messaging: &'a Messaging,
    pub(crate) peer: &'a Arc<Peer>,
    pub(crate) local: &'a mut Local,
    pub(crate) table: Option<RwLockReadGuard<'a, Table<Arc<Peer>>>>,
    pub(crate) now_ns: u64,
    unix_ms: Option<u64>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(messaging: &'a Messaging, peer: &'a Arc<Peer>, local: &'a mut Local) -> Self {
        Self {
            messaging,
            peer,
            local,
            table: None,
            now_ns: messaging.platform.now_ns(),
            unix_ms: None,
        }
    }

    /// Returns the authenticated identity of the client.
    pub fn principal(&self) -> &Principal {
        &self.peer.facts.principal
    }

    /// Returns the node's monotonic clock in nanoseconds, read once per turn.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the wall clock time in milliseconds since 1970-01-01 UTC, read once per turn.
    pub(crate) fn unix_ms(&mut self) -> u64 {
        let clock = &self.messaging.platform.ports.clock;
        *self.unix_ms.get_or_insert_with(|| clock.unix_ms())
    }

    /// Returns the client's credit for consumed one-way messages.
    pub fn credit(&mut self, messages: u32, bytes: u64) {
        let mut lane = self.peer.lane.lock();
        let pressures = lane.credit(messages, bytes, self.now_ns);
        drop(lane);
        drop(pressures);
    }

    /// Counts an event that only the listener can see.
    pub fn count(&mut self, counter: Counter) {
        self.local.tally.count(counter);
    }

    /// Releases the routing table until it is used again. Call it before requests to conversations
    /// outside of the turn, because their locks come before the table's.
    pub fn unlock_table(&mut self) {
        self.table = None;
    }

    /// Returns the turn's time, round of appends and counts, for a request to another service.
    pub fn context(&mut self) -> RequestContext<'_> {
        RequestContext {
            now_ns: self.now_ns,
            unix_ms: self.unix_ms(),
            round: &mut self.local.round,
            tally: &mut self.local.tally,
        }
    }

    /// Pushes output that belongs to none of the client's requests into its own inbox.
    pub(crate) fn push_to_client(&mut self, outgoing: Outgoing<'_>) {
        self.peer.push(outgoing, &mut self.local.dirty);
    }

    /// Ends the turn: adds its counts and flushes all receivers.
    pub fn finish(self) {}
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // The locks taken below come before the table's lock.
        self.table = None;
        if let Some(mailboxes) = &self.messaging.mailboxes {
            let (outcomes, dirty) = (&mut self.local.outcomes, &mut self.local.dirty);
            for slot in self.local.written.drain(..) {
                mailboxes.continue_mailbox(&slot, dirty);
            }
            mailboxes.settle(outcomes, dirty);
            for name in self.local.joined.drain(..) {
                mailboxes.deliver_to_new_subscriber(name.base(), dirty);
            }
        }
        self.local.joined.clear();
        if !self.local.keeps_rounds {
            self.local.round = None;
        }
        self.messaging.platform.counters.add(&mut self.local.tally);
        for peer in self.local.dirty.drain(..) {
            peer.flush();
        }
    }
}

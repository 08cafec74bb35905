//! The connection of a client, owned by the edge's task that reads from it.

use std::sync::Arc;

use access::Principal;
use journal::Round;
use mailbox::Again;
use model::{ErrorCode, Failure, Name};
use platform::{Counter, Tally};
use routing::ConnectionId;

use crate::mailboxes::{Outcome, Slot};
use crate::node::Inner;
use crate::peer::Peer;
use crate::request::Path;
use crate::turn::Turn;

/// State that only the reading task uses.
#[derive(Default)]
pub(crate) struct Local {
    /// Number of bindings made.
    pub(crate) bindings: u64,
    /// The calls of the client; the index is the slot of the tag.
    pub(crate) paths: Vec<Option<Path>>,
    /// The appends that the journal's writer was not notified of yet.
    pub(crate) round: Option<Round>,
    /// True if the edge ends rounds; otherwise each turn is one round.
    pub(crate) keeps_rounds: bool,
    /// Mailboxes that continue at the end of this turn, because writes to them are durable.
    pub(crate) written: Vec<Arc<Slot>>,
    /// Answers to messages from mailboxes in this turn.
    pub(crate) outcomes: Vec<(Arc<Slot>, u64, Outcome)>,
    /// Names subscribed to in this turn.
    pub(crate) joined: Vec<Name>,
    pub(crate) dirty: Vec<Arc<Peer>>,
    pub(crate) tally: Tally,
    pub(crate) consumed_messages: u32,
    pub(crate) consumed_bytes: u64,
}

/// An open connection. Dropping it closes it: its subscriptions end, calls it has to answer fail as
/// `unconfirmed`, and calls it made are cancelled.
pub struct Connection {
    pub(crate) inner: Arc<Inner>,
    pub(crate) peer: Arc<Peer>,
    local: Local,
}

impl Connection {
    pub(crate) fn new(inner: Arc<Inner>, peer: Arc<Peer>) -> Self {
        Self {
            inner,
            peer,
            local: Local::default(),
        }
    }

    /// Returns the connection's number.
    pub fn id(&self) -> ConnectionId {
        self.peer.id
    }

    /// Returns the authenticated identity of the client.
    pub fn principal(&self) -> &Principal {
        &self.peer.facts.principal
    }

    /// Begins a turn for the frames of one read.
    pub fn turn(&mut self) -> Turn<'_> {
        Turn::new(&self.inner, &self.peer, &mut self.local)
    }

    /// Makes appends wait for [`Connection::end_round`], so that they share a sync with the appends
    /// of other connections.
    pub fn keep_rounds(&mut self) {
        self.local.keeps_rounds = true;
    }

    /// Returns whether appends wait for the end of the round.
    pub fn is_in_round(&self) -> bool {
        self.local.round.is_some()
    }

    /// Ends the round: notifies the journal's writer of the appends.
    pub fn end_round(&mut self) {
        self.local.round = None;
    }

    /// Counts an event that only the edge can see.
    pub fn count(&self, counter: Counter) {
        self.inner.platform.counters.count(counter);
    }
}

const LOST: Failure<'static> = Failure::new(
    ErrorCode::Unconfirmed,
    "the responder's connection was lost",
)
.after_sending();

impl Drop for Connection {
    fn drop(&mut self) {
        let inner = &self.inner;
        inner.router.peers.lock().remove(&self.peer.id);
        {
            let mut table = inner.router.table.write();
            for name in std::mem::take(&mut *self.peer.subscriptions.lock()) {
                table.unsubscribe(&name, self.peer.id);
            }
        }
        self.peer.client().close();
        let (calls, pressures) = {
            let mut lane = self.peer.lane.lock();
            (lane.calls.drain(), lane.release_all())
        };
        drop(pressures);
        let mut outcomes = Vec::new();
        for (_, call) in calls {
            inner.fail(call.caller, LOST, Again::Now, &mut outcomes);
        }
        inner.settle(outcomes);
        for path in self.local.paths.drain(..).flatten() {
            inner.router.cancel(path.responder, path.ticket);
        }
        inner.platform.counters.count(Counter::Closed);
    }
}

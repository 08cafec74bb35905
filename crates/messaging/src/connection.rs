//! The connection of a client, owned by the listener's task that reads from it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use access::Principal;
use journal::Round;
use mailbox::Again;
use model::{ErrorCode, Failure};
use platform::Counter;
use routing::ConnectionId;

use crate::local::Local;
use crate::messaging::{Messaging, Refusal};
use crate::outlet::Outlet;
use crate::peer::{Facts, Peer};
use crate::turn::Turn;

/// An open connection. Dropping it closes it: its subscriptions end, calls it has to answer fail as
/// `unconfirmed`, and calls it made are cancelled.
pub struct Connection {
    pub(crate) messaging: Arc<Messaging>,
    pub(crate) peer: Arc<Peer>,
    local: Local,
}

impl Messaging {
    /// Opens a connection for an authenticated client. `outlet` gets the connection's number and
    /// returns the outlet.
    pub fn connect(
        self: &Arc<Self>,
        facts: Facts,
        outlet: impl FnOnce(ConnectionId) -> Outlet,
    ) -> Result<Connection, Refusal> {
        let mut peers = self.router.peers.lock();
        if self.is_draining() {
            self.platform.counters.count(Counter::Refused);
            return Err(Refusal::Draining);
        }
        if peers.len() >= self.limits.connections_max {
            self.platform.counters.count(Counter::Refused);
            return Err(Refusal::TooMany(peers.len()));
        }
        let id = ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed));
        let peer = Arc::new(Peer::new(id, facts, outlet(id), self.platform.unix_ms()));
        peers.insert(id, peer.clone());
        self.platform.counters.count(Counter::Opened);
        Ok(Connection {
            messaging: self.clone(),
            peer,
            local: Local::default(),
        })
    }
}

impl Connection {
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
        Turn::new(&self.messaging, &self.peer, &mut self.local)
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

    /// Returns the round, to be ended by dropping it.
    pub fn take_round(&mut self) -> Option<Round> {
        self.local.round.take()
    }

    /// Ends the round: notifies the journal's writer of the appends.
    pub fn end_round(&mut self) {
        self.local.round = None;
    }

    /// Counts an event that only the listener can see.
    pub fn count(&self, counter: Counter) {
        self.messaging.platform.counters.count(counter);
    }
}

const LOST: Failure<'static> = Failure::new(
    ErrorCode::Unconfirmed,
    "the responder's connection was lost",
)
.after_sending();

impl Drop for Connection {
    fn drop(&mut self) {
        let messaging = &self.messaging;
        messaging.router.peers.lock().remove(&self.peer.id);
        {
            let mut table = messaging.router.table.write();
            for name in std::mem::take(&mut *self.peer.subscriptions.lock()).into_keys() {
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
            messaging.fail(call.caller, LOST, Again::Now, &mut outcomes);
        }
        messaging.settle(outcomes);
        for path in self.local.paths.drain(..).flatten() {
            messaging.router.cancel(path.responder, path.ticket);
        }
        messaging.platform.counters.count(Counter::Closed);
    }
}

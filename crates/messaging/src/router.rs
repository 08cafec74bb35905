//! [`Router`]: the connected clients and the names that they subscribe to.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use platform::{Counter, Platform};
use routing::{ConnectionId, Table, Ticket};

use crate::lane::{Caller, Lane};
use crate::outlet::Outgoing;
use crate::peer::Peer;
use crate::throttle::Throttle;

/// The connected clients and the names that they subscribe to.
pub(crate) struct Router {
    platform: Arc<Platform>,
    pub(crate) table: RwLock<Table<Arc<Peer>>>,
    pub(crate) peers: Mutex<BTreeMap<ConnectionId, Arc<Peer>>>,
    /// Peers with calls or paused senders to sweep. The list holds weak references, because a
    /// peer's outlet may hold the node: otherwise a node that is no longer swept would never be
    /// freed.
    pub(crate) to_sweep: Mutex<Vec<Weak<Peer>>>,
}

impl Router {
    /// Returns a router without clients.
    pub(crate) fn new(platform: Arc<Platform>) -> Self {
        Self {
            platform,
            table: RwLock::new(Table::default()),
            peers: Mutex::default(),
            to_sweep: Mutex::default(),
        }
    }

    /// Adds a call for `peer` to answer; `None` if it has the maximum number of calls.
    pub(crate) fn admit_call(
        &self,
        peer: &Arc<Peer>,
        caller: Caller,
        deadline_ns: u64,
    ) -> Option<Ticket> {
        let mut lane = peer.lane.lock();
        if lane.calls.len() >= peer.facts.calls_max as usize {
            return None;
        }
        let ticket = lane.call(caller, deadline_ns);
        self.list(peer, &mut lane);
        Some(ticket)
    }

    /// Pauses a route until `peer` has room.
    pub(crate) fn press(
        &self,
        peer: &Arc<Peer>,
        route: &Arc<Throttle>,
        dirty: &mut Vec<Arc<Peer>>,
    ) {
        let mut lane = peer.lane.lock();
        lane.press(route, dirty);
        self.list(peer, &mut lane);
    }

    /// Adds a peer to the list of peers to sweep, unless it is on it.
    fn list(&self, peer: &Arc<Peer>, lane: &mut Lane) {
        if std::mem::replace(&mut lane.listed, true) {
            return;
        }
        let was_empty = {
            let mut to_sweep = self.to_sweep.lock();
            to_sweep.push(Arc::downgrade(peer));
            to_sweep.len() == 1
        };
        if was_empty {
            self.platform.need_sweep();
        }
    }

    pub(crate) fn peer(&self, id: ConnectionId) -> Option<Arc<Peer>> {
        self.peers.lock().get(&id).cloned()
    }

    /// Cancels a call on behalf of its caller: the responder gets a CANCEL.
    pub(crate) fn cancel(&self, responder: ConnectionId, ticket: Ticket) -> bool {
        let Some(peer) = self.peer(responder) else {
            return false;
        };
        let taken = peer.lane.lock().calls.take(ticket).is_some();
        if taken {
            self.platform.counters.count(Counter::Cancelled);
            peer.push_now(Outgoing::Cancel { ticket });
        }
        taken
    }
}

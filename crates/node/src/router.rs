//! [`Router`]: the connected clients and the names that they subscribe to.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use model::{ErrorCode, Failure};
use parking_lot::{Mutex, RwLock};
use platform::{Counter, Platform};
use routing::{ConnectionId, Table, Ticket};

use crate::peer::{Facts, Peer};
use crate::ports::Outgoing;

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

    /// Adds a peer to the list of peers to sweep.
    pub(crate) fn list(&self, peer: &Arc<Peer>) {
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

    /// Closes the connections for which `reason` returns a text, which is sent to the client.
    /// Returns their number.
    pub(crate) fn dismiss(
        &self,
        code: ErrorCode,
        reason: impl Fn(&Facts) -> Option<String>,
    ) -> usize {
        let with_reason = |peer: &Arc<Peer>| Some((peer.clone(), reason(&peer.facts)?));
        let peers = self.peers.lock();
        let dismissed: Vec<_> = peers.values().filter_map(with_reason).collect();
        drop(peers);
        for (peer, reason) in &dismissed {
            self.platform.counters.count_failure(code);
            peer.client().dismiss(Failure::new(code, reason));
        }
        dismissed.len()
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

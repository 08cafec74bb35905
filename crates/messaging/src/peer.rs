//! A client as seen by the rest of the node.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use access::Principal;
use access::tokens::Token;
use model::Name;
use parking_lot::Mutex;
use quota_service::Charged;
use routing::ConnectionId;
use topics::User;

use crate::description::Description;
use crate::lane::Lane;
use crate::outlet::{Client, Outgoing, Outlet, Pushed};

/// The facts that a listener knows about a client when it opens a connection.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The agent name that the client claimed; then also the principal's name.
    pub name: Option<Name>,
    /// The authenticated identity and the names that it may use.
    pub principal: Principal,
    /// The remote address, for display.
    pub remote: String,
    /// The listener that accepted the connection.
    pub door: &'static str,
    /// The token that authenticated the client, if there was one.
    pub token: Option<Arc<Token>>,
    /// The user that authenticated the client by password, if there was one.
    pub user: Option<Arc<User>>,
    /// True for a part of the node itself, which may use the names of `telpher/`.
    pub trusted: bool,
    /// Maximum number of calls that the client answers at the same time.
    pub calls_max: u32,
    /// Credit for one-way messages, in messages.
    pub credit_messages: u32,
    /// Credit for one-way messages, in bytes.
    pub credit_bytes: u64,
}

/// The result of pushing output to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushOutcome {
    /// Queued.
    Queued,
    /// Not queued: the client does not read.
    NoRoom,
    /// The connection has ended; the routing table will be updated shortly.
    Gone,
}

pub(crate) struct Peer {
    pub(crate) id: ConnectionId,
    pub(crate) facts: Facts,
    outlet: Outlet,
    pub(crate) lane: Mutex<Lane>,
    /// The source of its messages, as shown to subscribers that request it.
    pub(crate) source: String,
    /// The subject that is charged by limits at the node's listeners.
    pub(crate) charged: Charged,
    pub(crate) opened_unix_ms: u64,
    /// The subscriptions, with the descriptions that they came with.
    pub(crate) subscriptions: Mutex<BTreeMap<Name, Option<Arc<Description>>>>,
}

/// Returns the source of a client without a name.
fn source_of(id: ConnectionId) -> String {
    format!("connection:{}", id.0)
}

impl Peer {
    pub(crate) fn new(id: ConnectionId, facts: Facts, outlet: Outlet, opened_unix_ms: u64) -> Self {
        let source = match facts.name.is_some() || facts.principal.is_proven() {
            true => facts.principal.name().to_string(),
            false => source_of(id),
        };
        let lane = Mutex::new(Lane::new(facts.credit_messages, facts.credit_bytes));
        Self {
            id,
            charged: Charged::new(&facts.principal),
            facts,
            outlet,
            lane,
            source,
            opened_unix_ms,
            subscriptions: Mutex::default(),
        }
    }

    /// Returns the source of `sender`'s messages as shown to this client. Agents of the node itself
    /// get the connection number, so that they can look up the principal.
    pub(crate) fn source_from<'a>(&self, sender: &'a Self) -> Cow<'a, str> {
        match self.facts.trusted {
            true => source_of(sender.id).into(),
            false => sender.source.as_str().into(),
        }
    }

    /// Returns the port for the end of the connection.
    pub(crate) fn client(&self) -> &dyn Client {
        self.outlet.client()
    }

    /// Returns the number of bytes that wait for the client to read.
    pub(crate) fn queued_size(&self) -> usize {
        self.outlet.queued_size()
    }

    /// Writes queued output to the network, without waiting.
    pub(crate) fn flush(&self) {
        self.outlet.flush();
    }

    /// Pushes output. Returns whether the caller must flush at the end of its turn.
    pub(crate) fn push_unflushed(&self, outgoing: Outgoing<'_>) -> Pushed {
        self.outlet.push(outgoing)
    }

    /// Pushes output and adds the peer to the list of peers to flush.
    pub(crate) fn push(
        self: &Arc<Self>,
        outgoing: Outgoing<'_>,
        dirty: &mut Vec<Arc<Self>>,
    ) -> PushOutcome {
        match self.outlet.push(outgoing) {
            Pushed::First => {
                dirty.push(self.clone());
                PushOutcome::Queued
            }
            Pushed::Queued => PushOutcome::Queued,
            Pushed::Full => PushOutcome::NoRoom,
            Pushed::Closed => PushOutcome::Gone,
        }
    }

    /// Pushes output and flushes at once, for use outside of a turn.
    pub(crate) fn push_now(&self, outgoing: Outgoing<'_>) {
        if self.outlet.push(outgoing) == Pushed::First {
            self.outlet.flush();
        }
    }

    /// Removes a subscription that ended or was replaced. Routes to that name no longer wait for
    /// this peer, unless it has other instances of the same agent.
    pub(crate) fn remove_subscription(&self, name: &Name) {
        let mut held = self.subscriptions.lock();
        held.remove(name);
        if !self.lane.lock().is_pressing() {
            return;
        }
        let is_another = held.keys().any(|other| other.base() == name.base());
        drop(held);
        if !is_another {
            let pressures = self.lane.lock().release_routes_to(name.base());
            drop(pressures);
        }
    }
}

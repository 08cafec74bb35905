//! A client as the rest of the node sees it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use model::Name;
use parking_lot::Mutex;
use routing::ConnectionId;
use topics::User;

use crate::access::Principal;
use crate::lane::Lane;
use crate::ports::{Outgoing, Outlet, Pushed};
use crate::quotas::Charged;
use crate::tokens::Token;

/// What a door knows of a client when it opens a connection.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The agent's name, when it claimed one; the principal's name then.
    pub name: Option<Name>,
    /// The client's proven identity, and the names that it may use.
    pub principal: Principal,
    /// Where it is, for people.
    pub remote: String,
    /// Which door it came in by.
    pub door: &'static str,
    /// What let it in, where that takes a token.
    pub token: Option<Arc<Token>>,
    /// Whom its password has let in, where it came by one.
    pub user: Option<Arc<User>>,
    /// Whether it is part of the node itself and may use the names of `telpher/`.
    pub trusted: bool,
    /// Calls it answers at once.
    pub calls_max: u32,
    /// One-way messages it takes before it returns credit.
    pub credit_messages: u32,
    /// One-way bytes it takes before it returns credit.
    pub credit_bytes: u64,
}

/// What became of something for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// It is on its way.
    Over,
    /// The client does not read.
    NoRoom,
    /// The client's connection has ended; the table is about to learn of it.
    Gone,
}

pub(crate) struct Peer {
    pub(crate) id: ConnectionId,
    pub(crate) facts: Facts,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) lane: Mutex<Lane>,
    /// What subscribers that ask are told.
    pub(crate) source: String,
    /// Who is charged for what it does, where a limit counts it at the door.
    pub(crate) charged: Charged,
    pub(crate) opened_unix_ms: u64,
    pub(crate) subscriptions: Mutex<BTreeSet<Name>>,
}

/// The source of a client that has no name.
fn source_of(id: ConnectionId) -> String {
    format!("connection:{}", id.0)
}

impl Peer {
    pub(crate) fn new(
        id: ConnectionId,
        facts: Facts,
        outlet: Arc<dyn Outlet>,
        opened_unix_ms: u64,
    ) -> Self {
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

    /// The source of a message of `sender`, as this client is told. The node's own agents are told the
    /// connection, so that they can look up its principal.
    pub(crate) fn source_from<'a>(&self, sender: &'a Self) -> Cow<'a, str> {
        match self.facts.trusted {
            true => source_of(sender.id).into(),
            false => sender.source.as_str().into(),
        }
    }

    /// Pushes and remembers whom to flush.
    pub(crate) fn push(
        self: &Arc<Self>,
        outgoing: Outgoing<'_>,
        dirty: &mut Vec<Arc<Self>>,
    ) -> Handed {
        match self.outlet.push(outgoing) {
            Pushed::First => {
                dirty.push(self.clone());
                Handed::Over
            }
            Pushed::Queued => Handed::Over,
            Pushed::Full => Handed::NoRoom,
            Pushed::Closed => Handed::Gone,
        }
    }

    /// Pushes and flushes at once: for what does not belong to a turn.
    pub(crate) fn push_now(&self, outgoing: Outgoing<'_>) {
        if self.outlet.push(outgoing) == Pushed::First {
            self.outlet.flush();
        }
    }
}

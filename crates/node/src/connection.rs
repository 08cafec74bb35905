//! The connection of a client, owned by the edge's task that reads from it.

use std::sync::Arc;
use std::task::Waker;

use journal::Round;
use mailbox::Again;
use model::{ErrorCode, Name};
use routing::{ConnectionId, Target, Ticket};

use crate::access::Principal;
use crate::conversations::{Cold, Slot as Conversation};
use crate::counters::{Counter, Tally};
use crate::lane::Caller;
use crate::node::Inner;
use crate::peer::Peer;
use crate::ports::Failure;
use crate::records::TopicRoute;
use crate::store::{Answers, Followers, Location, Outcome, Reads, Slot};
use crate::throttle::Throttle;
use crate::turn::{Cast, Turn};

/// A route that the client bound.
pub(crate) enum Route {
    Bound {
        name: Name,
        target: Target,
        cast: Cast,
        method: Arc<str>,
        throttle: Arc<Throttle>,
    },
    /// A stream of records.
    Stream {
        name: Name,
        /// The stream's location, once it was looked up; it never changes.
        location: Option<Location>,
    },
    /// A conversation.
    Conversation {
        name: Name,
        /// The loaded conversation, once it was appended to.
        slot: Option<Arc<Conversation>>,
    },
    /// A topic, or one of its partitions.
    Topic(TopicRoute),
    /// The name was invalid; requests on the route fail with this reason.
    Invalid { reason: String },
}

/// The responder that a call of this client was routed to.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) generation: u32,
    pub(crate) responder: ConnectionId,
    pub(crate) ticket: Ticket,
}

/// State that only the reading task uses.
#[derive(Default)]
pub(crate) struct Local {
    /// The routes; the index is the route number minus one.
    pub(crate) routes: Vec<Route>,
    /// Number of bindings made.
    pub(crate) bindings: u64,
    /// The calls of the client; the index is the slot of the tag.
    pub(crate) paths: Vec<Option<Path>>,
    /// Answers that wait until they are durable.
    pub(crate) answers: Answers,
    /// The appends that the journal's writer was not notified of yet.
    pub(crate) round: Option<Round>,
    /// True if the edge ends rounds; otherwise each turn is one round.
    pub(crate) keeps_rounds: bool,
    pub(crate) followers: Followers,
    /// Reads that wait for the disk.
    pub(crate) reads: Reads,
    /// Requests that wait until a conversation is loaded.
    pub(crate) cold: Cold,
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

    /// Sends answers that have become durable, and new records to followers. `task` is woken when
    /// there may be more. The reading task calls this each time before it suspends. Returns true if
    /// output has to wait because the client leaves too much unread.
    pub fn settle(&mut self, task: &Waker) -> bool {
        let Local {
            answers,
            followers,
            reads,
            cold,
            ..
        } = &self.local;
        let is_idle = answers.is_empty() && followers.is_empty() && reads.is_empty();
        match is_idle && cold.is_empty() {
            true => false,
            false => self.turn().settle(task),
        }
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

    /// Returns whether so many answers wait for the disk that the edge must not read from the
    /// client until some of them are [settled](Self::settle).
    pub fn is_full(&self) -> bool {
        let local = &self.local;
        local.answers.is_full() || local.reads.is_full() || local.cold.is_full()
    }

    /// Counts an event that only the edge can see.
    pub fn count(&self, counter: Counter) {
        self.inner.counters.count(counter);
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
        inner.peers.lock().remove(&self.peer.id);
        {
            let mut table = inner.table.write();
            for name in std::mem::take(&mut *self.peer.subscriptions.lock()) {
                table.unsubscribe(&name, self.peer.id);
            }
            for route in self.local.routes.drain(..) {
                if let Route::Bound { target, .. } = route {
                    table.release(target);
                }
            }
        }
        self.peer.outlet.close();
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
        if let Some(store) = &inner.store {
            self.local.followers.clear(&store.journal);
        }
        for path in self.local.paths.drain(..).flatten() {
            inner.cancel(path.responder, path.ticket);
        }
        inner.counters.count(Counter::Closed);
    }
}

impl Peer {
    /// Pauses a route until this peer has room.
    pub(crate) fn press(
        self: &Arc<Self>,
        route: &Arc<Throttle>,
        dirty: &mut Vec<Arc<Self>>,
        inner: &Inner,
    ) {
        let mut lane = self.lane.lock();
        lane.press(route, dirty);
        self.list(&mut lane.listed, inner);
    }

    /// Removes a subscription that ended or was replaced. Routes to that name no longer wait for
    /// this peer, unless it has other instances of the same agent.
    pub(crate) fn remove_subscription(&self, name: &Name) {
        let mut held = self.subscriptions.lock();
        held.remove(name);
        if !self.lane.lock().is_pressing() {
            return;
        }
        let is_another = held.iter().any(|other| other.base() == name.base());
        drop(held);
        if !is_another {
            let pressures = self.lane.lock().release_routes_to(name.base());
            drop(pressures);
        }
    }

    /// Adds the peer to the list of peers to sweep.
    pub(crate) fn list(self: &Arc<Self>, listed: &mut bool, inner: &Inner) {
        if !std::mem::replace(listed, true) {
            inner.list(self.clone());
        }
    }

    /// Adds a call for this peer to answer; `None` if it has the maximum number of calls.
    pub(crate) fn admit_call(
        self: &Arc<Self>,
        caller: Caller,
        deadline_ns: u64,
        inner: &Inner,
    ) -> Option<Ticket> {
        let mut lane = self.lane.lock();
        if lane.calls.len() >= self.facts.calls_max as usize {
            return None;
        }
        let ticket = lane.call(caller, deadline_ns);
        let mut listed = lane.listed;
        self.list(&mut listed, inner);
        lane.listed = listed;
        Some(ticket)
    }
}

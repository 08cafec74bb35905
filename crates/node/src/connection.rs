//! A client's own side of its connection: owned by the door's task that reads from it.

use std::sync::Arc;
use std::task::Waker;

use journal::Round;
use mailbox::Again;
use model::{ErrorCode, Name};
use routing::{ConnectionId, Target, Ticket};

use crate::access::Principal;
use crate::conversations::{Cold, Slot as Conversation};
use crate::counters::{Counter, Tally};
use crate::handle::Inner;
use crate::lane::Caller;
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
        /// Where it is, once it was found: it never moves.
        location: Option<Location>,
    },
    /// A conversation.
    Conversation {
        name: Name,
        /// Where it is in memory, once it was appended to.
        slot: Option<Arc<Conversation>>,
    },
    /// A topic, or one of its partitions.
    Topic(TopicRoute),
    /// The name was not valid; whoever uses the route is told why.
    Invalid { reason: String },
}

/// Where a call of this client went.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) generation: u32,
    pub(crate) responder: ConnectionId,
    pub(crate) ticket: Ticket,
}

/// What only the reading task touches.
#[derive(Default)]
pub(crate) struct Local {
    /// Index is the route's number less one.
    pub(crate) routes: Vec<Route>,
    /// Counts bindings.
    pub(crate) bindings: u64,
    /// Index is the slot of the client's own number.
    pub(crate) paths: Vec<Option<Path>>,
    /// What waits until it is durable.
    pub(crate) answers: Answers,
    /// What was appended and the line has not been told of.
    pub(crate) round: Option<Round>,
    /// The door says when a round ends; else each turn is one.
    pub(crate) keeps_rounds: bool,
    pub(crate) followers: Followers,
    /// What waits until it has been read.
    pub(crate) reads: Reads,
    /// What waits until a conversation has been read.
    pub(crate) cold: Cold,
    /// What was said to messages from mailboxes in this turn.
    pub(crate) outcomes: Vec<(Arc<Slot>, u64, Outcome)>,
    /// Names that were subscribed to in this turn.
    pub(crate) joined: Vec<Name>,
    pub(crate) dirty: Vec<Arc<Peer>>,
    pub(crate) tally: Tally,
    pub(crate) consumed_messages: u32,
    pub(crate) consumed_bytes: u64,
}

/// An open connection. Dropping it closes it: subscriptions end, calls it had to answer end as
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

    /// The connection's number.
    pub fn id(&self) -> ConnectionId {
        self.peer.id
    }

    /// The proven identity of the client.
    pub fn principal(&self) -> &Principal {
        &self.peer.facts.principal
    }

    /// Begins to hand in what one read brought.
    pub fn turn(&mut self) -> Turn<'_> {
        Turn::new(&self.inner, &self.peer, &mut self.local)
    }

    /// Answers what has become durable and sends on what is followed; `task` is woken when there
    /// may be more. The task that reads calls it each time before it rests. True when the client
    /// leaves so much unread that something has to wait for that.
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

    /// From now on what is appended in a turn goes to the disk when the door ends the round, so
    /// that what other connections append meanwhile goes there with it.
    pub fn keep_rounds(&mut self) {
        self.local.keeps_rounds = true;
    }

    /// Whether something waits for the end of the round.
    pub fn is_in_round(&self) -> bool {
        self.local.round.is_some()
    }

    /// Has the disk take what was appended.
    pub fn end_round(&mut self) {
        self.local.round = None;
    }

    /// Whether so much waits for the disk that nothing should be read from the client until
    /// some of them are [settled](Self::settle).
    pub fn is_full(&self) -> bool {
        let local = &self.local;
        local.answers.is_full() || local.reads.is_full() || local.cold.is_full()
    }

    /// Counts something that only the door can see.
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
            (lane.calls.drain(), lane.let_go())
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
    /// Has a route wait for this peer.
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

    /// The peer has given up a subscription, or lost it to another: nobody waits for it on account
    /// of that name, unless it has other instances of the same agent.
    pub(crate) fn part_with(&self, name: &Name) {
        let mut held = self.subscriptions.lock();
        held.remove(name);
        if !self.lane.lock().is_pressing() {
            return;
        }
        let is_another = held.iter().any(|other| other.base() == name.base());
        drop(held);
        if !is_another {
            let pressures = self.lane.lock().let_go_of(name.base());
            drop(pressures);
        }
    }

    /// Puts the peer on the list of those to sweep.
    pub(crate) fn list(self: &Arc<Self>, listed: &mut bool, inner: &Inner) {
        if !std::mem::replace(listed, true) {
            inner.list(self.clone());
        }
    }

    /// Notes a call that this peer has to answer; `None` when it answers as many as it can.
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

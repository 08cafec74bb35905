//! The node itself: everything that outlives a connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use journal::Journal;
use mailbox::Again;
use model::{ErrorCode, WallClock, limits};
use parking_lot::{Mutex, RwLock};
use routing::{ConnectionId, Table, Ticket};

use crate::connection::Connection;
use crate::counters::{Counter, Counters};
use crate::lane::Caller;
use crate::peer::{Facts, Peer};
use crate::ports::offload::{Inline, Offload, Overloaded, Work};
use crate::ports::{Failure, Names, Outgoing, Outlet, Ports};
use crate::store::{self, Outcome, Slot, Store, StoreError};

/// What a node takes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at the same time.
    pub connections_max: usize,
    /// Calls in flight per caller's connection.
    pub calls_max: u32,
    /// Subscriptions per connection.
    pub subscriptions_per_connection_max: usize,
    /// One-way messages a sender may have in flight to the node.
    pub credit_messages: u32,
    /// One-way bytes a sender may have in flight to the node.
    pub credit_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            calls_max: limits::CALLS_IN_FLIGHT_MAX,
            subscriptions_per_connection_max: limits::SUBSCRIPTIONS_PER_CONNECTION_MAX as usize,
            credit_messages: 8_192,
            credit_bytes: 8 << 20,
        }
    }
}

/// Why a connection was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The node is shutting down.
    #[error("the node is draining")]
    Draining,
    /// There are as many connections as are allowed.
    #[error("the node has {0} connections, which is its limit")]
    TooMany(usize),
}

pub(crate) struct Inner {
    pub(crate) ports: Ports,
    pub(crate) limits: Limits,
    pub(crate) counters: Counters,
    pub(crate) table: RwLock<Table<Arc<Peer>>>,
    pub(crate) peers: Mutex<BTreeMap<ConnectionId, Arc<Peer>>>,
    /// Peers with calls or paused senders to look after. A peer's way out may hold the node: the list
    /// does not hold the peer, or a node that is swept no more would never end.
    pub(crate) to_sweep: Mutex<Vec<Weak<Peer>>>,
    /// Called when there is something to sweep again.
    sweep_needed: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// The names of a door that has names of its own.
    pub(crate) names: OnceLock<Arc<dyn Names>>,
    /// Who does what may wait for a disk, when somebody does.
    offload: OnceLock<Arc<dyn Offload>>,
    /// What is kept, when there is a journal to keep it in.
    pub(crate) store: Option<Store>,
    /// The wall clock by which records expire.
    expiry_clock: Mutex<WallClock>,
    /// Since when appends have waited for a free segment; 0 while none wait.
    pub(crate) starved_since_ns: AtomicU64,
    /// Sockets of the listeners, when somebody counts them.
    sockets: OnceLock<SocketsSource>,
    /// How long syncs take, when somebody measures it.
    pub(crate) sync_times: OnceLock<Arc<journal::SyncTimes>>,
    /// What is derived from conversations, when somebody keeps it.
    pub(crate) views: OnceLock<crate::views::Kept>,
    /// Quotas.
    pub(crate) quotas: crate::quotas::State,
    /// Agents that are called, when somebody calls them.
    pub(crate) webhooks: OnceLock<crate::webhooks::Kept>,
    /// Topics, when the node has begun with them.
    pub(crate) topics: OnceLock<Arc<crate::topics::State>>,
    next_connection: AtomicU64,
    draining: AtomicBool,
}

type SocketsSource = Box<dyn Fn() -> SocketsView + Send + Sync>;

/// Sockets of all listeners against their common limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketsView {
    /// Open sockets.
    pub open: usize,
    /// Sockets that may be open.
    pub limit: usize,
    /// Sockets that were refused since the start.
    pub refused: u64,
}

/// A node. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    pub(crate) inner: Arc<Inner>,
}

impl Handle {
    /// A node with nobody connected, which keeps nothing.
    pub fn new(limits: Limits, ports: Ports) -> Self {
        Self::with_store(limits, ports, None)
    }

    /// A node with nobody connected, which keeps mailboxes and streams in a journal.
    pub fn with_journal(
        limits: Limits,
        ports: Ports,
        journal: Arc<Journal>,
        options: store::Options,
    ) -> Result<Self, StoreError> {
        let store = Store::open(journal, options)?;
        Ok(Self::with_store(limits, ports, Some(store)))
    }

    fn with_store(limits: Limits, ports: Ports, store: Option<Store>) -> Self {
        Self {
            inner: Arc::new(Inner {
                quotas: crate::quotas::State::new(&ports),
                ports,
                limits,
                counters: Counters::default(),
                table: RwLock::default(),
                peers: Mutex::default(),
                to_sweep: Mutex::default(),
                sweep_needed: OnceLock::new(),
                names: OnceLock::new(),
                offload: OnceLock::new(),
                store,
                expiry_clock: Mutex::default(),
                starved_since_ns: AtomicU64::new(0),
                sockets: OnceLock::new(),
                sync_times: OnceLock::new(),
                views: OnceLock::new(),
                webhooks: OnceLock::new(),
                topics: OnceLock::new(),
                next_connection: AtomicU64::new(1),
                draining: AtomicBool::new(false),
            }),
        }
    }

    /// Whether the wall clock stepped forward and the step is not confirmed: nothing expires by it.
    pub fn is_clock_doubted(&self) -> bool {
        // A reading, too: a step is noticed when it happens.
        self.inner.expiry_ms();
        self.inner.expiry_clock.lock().is_doubted()
    }

    /// Shows the sockets of all listeners from now on.
    pub fn show_sockets(&self, source: impl Fn() -> SocketsView + Send + Sync + 'static) {
        // A second source would show the same sockets.
        let _ = self.inner.sockets.set(Box::new(source));
    }

    /// Sockets of all listeners, if they are counted.
    pub fn sockets(&self) -> Option<SocketsView> {
        self.inner.sockets.get().map(|source| source())
    }

    /// Opens a connection for a client that has introduced itself; `outlet` receives its number
    /// and makes the way out.
    pub fn open(
        &self,
        facts: Facts,
        outlet: impl FnOnce(ConnectionId) -> Arc<dyn Outlet>,
    ) -> Result<Connection, Refusal> {
        let inner = &self.inner;
        let mut peers = inner.peers.lock();
        if self.is_draining() {
            inner.counters.count(Counter::Refused);
            return Err(Refusal::Draining);
        }
        if peers.len() >= inner.limits.connections_max {
            inner.counters.count(Counter::Refused);
            return Err(Refusal::TooMany(peers.len()));
        }
        let id = ConnectionId(inner.next_connection.fetch_add(1, Ordering::Relaxed));
        let peer = Arc::new(Peer::new(
            id,
            facts,
            outlet(id),
            inner.ports.clock.unix_ms(),
        ));
        peers.insert(id, peer.clone());
        inner.counters.count(Counter::Opened);
        Ok(Connection::new(inner.clone(), peer))
    }

    /// The node's limits.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// The node's ports.
    pub fn ports(&self) -> &Ports {
        &self.inner.ports
    }

    /// The node's counters.
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Connections that are open.
    pub fn connection_count(&self) -> usize {
        self.inner.peers.lock().len()
    }

    /// Whether new connections are refused.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::Acquire)
    }

    /// Refuses new connections and tells every client to finish within `drain_ms`.
    pub fn drain(&self, drain_ms: u32) {
        let peers: Vec<_> = {
            let peers = self.inner.peers.lock();
            self.inner.draining.store(true, Ordering::Release);
            peers.values().cloned().collect()
        };
        for peer in peers {
            peer.push_now(Outgoing::Goaway {
                drain_ms,
                message: "the node is shutting down",
            });
        }
    }

    /// The facts of an open connection, by the source that the node's own agents are told of its
    /// requests (`connection:7`).
    pub fn facts_of_source(&self, source: &str) -> Option<Facts> {
        let id = source.strip_prefix("connection:")?.parse().ok()?;
        let peer = self.inner.peer(ConnectionId(id))?;
        Some(peer.facts.clone())
    }

    /// Ends the connections of those clients for which there is a reason, and tells it to them.
    /// Returns how many there were.
    pub fn dismiss(&self, code: ErrorCode, reason: impl Fn(&Facts) -> Option<String>) -> usize {
        let with_reason = |peer: &Arc<Peer>| Some((peer.clone(), reason(&peer.facts)?));
        let peers = self.inner.peers.lock();
        let dismissed: Vec<_> = peers.values().filter_map(with_reason).collect();
        drop(peers);
        for (peer, reason) in &dismissed {
            self.inner.counters.count_failure(code);
            peer.outlet.dismiss(Failure::new(code, reason));
        }
        dismissed.len()
    }

    /// Calls that responders have not answered.
    pub fn pending_call_count(&self) -> usize {
        self.inner
            .peers
            .lock()
            .values()
            .map(|peer| peer.lane.lock().calls.len())
            .sum()
    }

    /// Closes every connection.
    pub fn close_all(&self) {
        let peers: Vec<_> = self.inner.peers.lock().values().cloned().collect();
        for peer in peers {
            peer.outlet.close();
        }
    }

    /// Has `wake` called whenever there is something to sweep after there was nothing. Only the
    /// first caller's is taken.
    pub fn on_sweep_needed(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A node has one shell.
        let _ = self.inner.sweep_needed.set(Box::new(wake));
    }

    /// From now on what may wait for a disk is done there; until then, where it is asked for. Only
    /// the first caller's is taken.
    pub fn offload_to(&self, offload: Arc<dyn Offload>) {
        // A node has one shell.
        let _ = self.inner.offload.set(offload);
    }

    /// Ends calls whose deadline has passed and stops waiting for clients that have stopped.
    /// The shell calls it a few times a second as long as it returns true: there is something
    /// left to look after.
    pub fn sweep(&self) -> bool {
        let now_ns = self.inner.ports.clock.now_ns();
        let listed = std::mem::take(&mut *self.inner.to_sweep.lock());
        let mut kept = Vec::new();
        let mut outcomes = Vec::new();
        for peer in listed.iter().filter_map(Weak::upgrade) {
            let (expired, pressures) = {
                let mut lane = peer.lane.lock();
                let expired = lane.calls.expire(now_ns);
                let pressures = lane.give_up(now_ns);
                lane.listed = lane.needs_sweep();
                if lane.listed {
                    kept.push(Arc::downgrade(&peer));
                }
                (expired, pressures)
            };
            for (ticket, call) in expired {
                peer.push_now(Outgoing::Cancel { ticket });
                self.inner
                    .fail(call.caller, DEADLINE, Again::Now, &mut outcomes);
            }
            drop(pressures);
        }
        self.inner.settle(outcomes);
        let is_quota = self.quotas().sweep();
        let is_topic = self.topics().is_some_and(|topics| topics.sweep());
        let store = self.inner.store.as_ref();
        let is_stored = store.is_some_and(|store| {
            let is_mailbox = store.sweep(&self.inner);
            let is_draft = store.sweep_drafts(&self.inner);
            store.sweep_rooms(&self.inner) || is_mailbox || is_draft
        });
        let mut to_sweep = self.inner.to_sweep.lock();
        to_sweep.append(&mut kept);
        is_stored || is_quota || is_topic || !to_sweep.is_empty()
    }
}

const DEADLINE: Failure<'static> = Failure::new(
    ErrorCode::DeadlineExceeded,
    "the responder did not answer in time",
)
.after_sending();

impl Inner {
    /// Milliseconds since 1970 by which records expire and are erased: the wall clock without steps
    /// that are not confirmed.
    pub(crate) fn expiry_ms(&self) -> u64 {
        let clock = &self.ports.clock;
        let steady_ms = clock.now_ns() / 1_000_000;
        self.expiry_clock.lock().read(steady_ms, clock.unix_ms())
    }

    /// Tells a caller that its call has failed; a mailbox is told so with `outcomes`.
    pub(crate) fn fail(
        &self,
        caller: Caller,
        failure: Failure<'_>,
        again: Again,
        outcomes: &mut Vec<(Arc<Slot>, u64, Outcome)>,
    ) {
        match caller {
            Caller::Peer { peer, tag, .. } => {
                self.counters.count_failure(failure.code);
                peer.push_now(Outgoing::Failure {
                    tag: Some(tag),
                    failure,
                });
            }
            Caller::Mailbox { slot, offset } => {
                outcomes.push((slot, offset, Outcome::Again(again)));
            }
        }
    }

    /// Tells mailboxes what has become of their messages.
    pub(crate) fn settle(self: &Arc<Self>, mut outcomes: Vec<(Arc<Slot>, u64, Outcome)>) {
        let Some(store) = self.store.as_ref().filter(|_| !outcomes.is_empty()) else {
            return;
        };
        let mut dirty = Vec::new();
        store.settle(self, &mut outcomes, &mut dirty);
        for peer in dirty {
            peer.outlet.flush();
        }
    }

    /// Has something done that may wait for a disk. Nothing is locked meanwhile: it may be done here
    /// and now.
    pub(crate) fn offload(&self, work: Work) -> Result<(), Overloaded> {
        match self.offload.get() {
            Some(offload) => offload.offload(work),
            None => Inline.offload(work),
        }
    }

    /// Has the shell sweep.
    pub(crate) fn need_sweep(&self) {
        if let Some(wake) = self.sweep_needed.get() {
            wake();
        }
    }

    /// Puts a peer on the list of those to sweep.
    pub(crate) fn list(&self, peer: Arc<Peer>) {
        let was_empty = {
            let mut to_sweep = self.to_sweep.lock();
            to_sweep.push(Arc::downgrade(&peer));
            to_sweep.len() == 1
        };
        if was_empty {
            self.need_sweep();
        }
    }

    pub(crate) fn peer(&self, id: ConnectionId) -> Option<Arc<Peer>> {
        self.peers.lock().get(&id).cloned()
    }

    /// Ends a call on behalf of its caller: the responder is told to stop.
    pub(crate) fn cancel(&self, responder: ConnectionId, ticket: Ticket) -> bool {
        let Some(peer) = self.peer(responder) else {
            return false;
        };
        let taken = peer.lane.lock().calls.take(ticket).is_some();
        if taken {
            self.counters.count(Counter::Cancelled);
            peer.push_now(Outgoing::Cancel { ticket });
        }
        taken
    }
}

//! The node: all state that outlives a connection.

mod open;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use conversation_service::Conversations;
use mailbox::Again;
use model::{ErrorCode, Failure, limits};
use platform::{Counter, Counters, Overloaded, Pending, Platform, Ports};
use quota_service::{QuotaService, Quotas};
use routing::ConnectionId;
use store::{Health, Store, Streams};
use topic_service::Topics;
use views::Views;
use webhooks::Webhooks;

use crate::connection::Connection;
use crate::lane::Caller;
use crate::mailboxes::{Mailboxes, Outcome, Slot};
use crate::peer::{Facts, Peer};
use crate::ports::{Names, Outgoing, Outlet};
use crate::router::Router;

/// The limits of a node.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of connections.
    pub connections_max: usize,
    /// Maximum number of calls in flight per calling connection.
    pub calls_max: u32,
    /// Maximum number of subscriptions per connection.
    pub subscriptions_per_connection_max: usize,
    /// Credit of a sender for one-way messages in flight to the node, in messages.
    pub credit_messages: u32,
    /// Credit of a sender for one-way messages in flight to the node, in bytes.
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

/// The reason why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The node is shutting down.
    #[error("the node is draining")]
    Draining,
    /// The maximum number of connections is reached.
    #[error("too many connections (limit {0}, native.connections_max)")]
    TooMany(usize),
}

pub(crate) struct Inner {
    pub(crate) platform: Arc<Platform>,
    pub(crate) limits: Limits,
    pub(crate) router: Arc<Router>,
    /// The names of a listener with its own name table.
    pub(crate) names: Option<Arc<dyn Names>>,
    /// The source of socket counts, if there is one.
    sockets: Option<SocketsSource>,
    /// Quotas.
    pub(crate) quotas: Arc<QuotaService>,
    /// The storage and the services that need it; `None` for a node without a journal.
    pub(crate) stored: Option<StoredServices>,
    next_connection: AtomicU64,
    draining: AtomicBool,
}

/// The storage and the services that need it.
pub(crate) struct StoredServices {
    pub(crate) store: Arc<Store>,
    pub(crate) health: Health,
    pub(crate) streams: Streams,
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) topics: Topics,
    pub(crate) conversations: Conversations,
    /// The views of conversations, if enabled.
    pub(crate) views: Option<Views>,
    /// The webhooks, if enabled.
    pub(crate) webhooks: Option<Webhooks>,
}

/// A function that returns the current socket counts.
pub type SocketsSource = Box<dyn Fn() -> SocketsView + Send + Sync>;

/// The open sockets of all listeners, and their common limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketsView {
    /// Number of open sockets.
    pub open: usize,
    /// Maximum number of open sockets.
    pub limit: usize,
    /// Number of sockets refused since the start.
    pub refused: u64,
}

/// A node. Cheap to clone.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
}

impl Node {
    /// Returns the node's quotas.
    pub fn quotas(&self) -> Quotas<'_> {
        self.inner.quotas.quotas()
    }

    /// Returns the topics; `None` for a node without storage.
    pub fn topics(&self) -> Option<Topics> {
        Some(self.inner.stored.as_ref()?.topics.clone())
    }

    /// Returns whether the wall clock stepped forward without confirmation; until then nothing
    /// expires.
    pub fn is_clock_doubted(&self) -> bool {
        self.inner.platform.is_clock_doubted()
    }

    /// Returns the sockets of all listeners, if they are counted.
    pub fn sockets(&self) -> Option<SocketsView> {
        self.inner.sockets.as_ref().map(|source| source())
    }

    /// Opens a connection for an authenticated client. `outlet` gets the connection's number and
    /// returns the outlet.
    pub fn connect(
        &self,
        facts: Facts,
        outlet: impl FnOnce(ConnectionId) -> Outlet,
    ) -> Result<Connection, Refusal> {
        let inner = &self.inner;
        let mut peers = inner.router.peers.lock();
        if self.is_draining() {
            inner.platform.counters.count(Counter::Refused);
            return Err(Refusal::Draining);
        }
        if peers.len() >= inner.limits.connections_max {
            inner.platform.counters.count(Counter::Refused);
            return Err(Refusal::TooMany(peers.len()));
        }
        let id = ConnectionId(inner.next_connection.fetch_add(1, Ordering::Relaxed));
        let peer = Arc::new(Peer::new(id, facts, outlet(id), inner.platform.unix_ms()));
        peers.insert(id, peer.clone());
        inner.platform.counters.count(Counter::Opened);
        Ok(Connection::new(inner.clone(), peer))
    }

    /// Returns the health of the storage; `None` for a node without storage.
    pub fn health(&self) -> Option<&Health> {
        Some(&self.inner.stored.as_ref()?.health)
    }

    /// Returns the reason why the node is not ready, if it is not.
    pub fn unready(&self) -> Option<String> {
        if self.is_draining() {
            let reason =
                "the node is draining: it finishes requests in progress and accepts no new ones";
            return Some(reason.to_owned());
        }
        self.health()?.unready()
    }

    /// Returns the number of streams of all kinds that were ever created; `None` for a node without
    /// storage.
    pub fn stream_count(&self) -> Option<usize> {
        Some(self.inner.store()?.stream_count())
    }

    /// Returns the raw streams; `None` for a node without storage.
    pub fn streams(&self) -> Option<&Streams> {
        Some(&self.inner.stored.as_ref()?.streams)
    }

    /// Returns the mailboxes; `None` for a node without storage.
    pub fn mailboxes(&self) -> Option<&Arc<Mailboxes>> {
        self.inner.mailboxes()
    }

    /// Returns the conversations; `None` for a node without storage.
    pub fn conversations(&self) -> Option<&Conversations> {
        Some(&self.inner.stored.as_ref()?.conversations)
    }

    /// Returns the views of conversations; `None` if the node has none.
    pub fn views(&self) -> Option<&Views> {
        self.inner.stored.as_ref()?.views.as_ref()
    }

    /// Returns the webhooks; `None` if the node has none.
    pub fn webhooks(&self) -> Option<&Webhooks> {
        self.inner.stored.as_ref()?.webhooks.as_ref()
    }

    /// Returns the node's limits.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Returns the node's ports.
    pub fn ports(&self) -> &Ports {
        &self.inner.platform.ports
    }

    /// Returns the node's counters.
    pub fn counters(&self) -> &Counters {
        &self.inner.platform.counters
    }

    /// Runs work on a thread that may wait for the disk.
    pub fn offload<T, E>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, E> + Send + 'static,
    ) -> Pending<T, E>
    where
        T: Send + 'static,
        E: From<Overloaded> + Send + 'static,
    {
        let node = self.clone();
        self.inner.platform.offload(move || work(&node))
    }

    /// Returns the number of open connections.
    pub fn connection_count(&self) -> usize {
        self.inner.router.peers.lock().len()
    }

    /// Returns whether new connections are refused.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::Acquire)
    }

    /// Refuses new connections and asks every client to finish within `drain_ms`.
    pub fn drain(&self, drain_ms: u32) {
        let peers: Vec<_> = {
            let peers = self.inner.router.peers.lock();
            self.inner.draining.store(true, Ordering::Release);
            peers.values().cloned().collect()
        };
        for peer in peers {
            peer.client().goaway(drain_ms, "the node is shutting down");
        }
    }

    /// Returns the facts of an open connection, given the source that the node's own agents see in
    /// its requests (`connection:7`).
    pub fn facts_of_source(&self, source: &str) -> Option<Facts> {
        let id = source.strip_prefix("connection:")?.parse().ok()?;
        let peer = self.inner.router.peer(ConnectionId(id))?;
        Some(peer.facts.clone())
    }

    /// Closes the connections for which `reason` returns a text, which is sent to the client.
    /// Returns their number.
    pub fn dismiss(&self, code: ErrorCode, reason: impl Fn(&Facts) -> Option<String>) -> usize {
        self.inner.router.dismiss(code, reason)
    }

    /// Returns the number of calls that responders have not answered.
    pub fn pending_call_count(&self) -> usize {
        self.inner
            .router
            .peers
            .lock()
            .values()
            .map(|peer| peer.lane.lock().calls.len())
            .sum()
    }

    /// Closes every connection.
    pub fn close_all(&self) {
        let peers: Vec<_> = self.inner.router.peers.lock().values().cloned().collect();
        for peer in peers {
            peer.client().close();
        }
    }

    /// Ready when there is something to sweep after there was nothing. Only one task may wait.
    pub fn poll_sweep_needed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.platform.poll_sweep_needed(cx)
    }

    /// Ends calls whose deadline has passed, and releases senders that wait for stopped clients.
    /// The shell calls it several times a second as long as it returns true, which means that there
    /// is more to do.
    pub fn sweep(&self) -> bool {
        let now_ns = self.inner.platform.now_ns();
        let listed = std::mem::take(&mut *self.inner.router.to_sweep.lock());
        let mut kept = Vec::new();
        let mut outcomes = Vec::new();
        for peer in listed.iter().filter_map(Weak::upgrade) {
            let (expired, pressures) = {
                let mut lane = peer.lane.lock();
                let expired = lane.calls.expire(now_ns);
                let pressures = lane.release_if_stopped(now_ns);
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
        let is_stored = self.inner.stored.as_ref().is_some_and(|services| {
            let is_topic = services.topics.sweep();
            let is_mailbox = services.mailboxes.sweep();
            services.conversations.sweep() || is_mailbox || is_topic
        });
        let mut to_sweep = self.inner.router.to_sweep.lock();
        to_sweep.append(&mut kept);
        is_stored || is_quota || !to_sweep.is_empty()
    }
}

const DEADLINE: Failure<'static> = Failure::new(
    ErrorCode::DeadlineExceeded,
    "the responder did not answer in time",
)
.after_sending();

impl Inner {
    /// Fails a call: sends the failure to a client, or adds it to `outcomes` for a mailbox.
    pub(crate) fn fail(
        &self,
        caller: Caller,
        failure: Failure<'_>,
        again: Again,
        outcomes: &mut Vec<(Arc<Slot>, u64, Outcome)>,
    ) {
        match caller {
            Caller::Peer { peer, tag, .. } => {
                self.platform.counters.count_failure(failure.code);
                peer.push_now(Outgoing::Failure { tag, failure });
            }
            Caller::Mailbox { slot, offset } => {
                outcomes.push((slot, offset, Outcome::Again(again)));
            }
        }
    }

    /// Reports the outcomes of deliveries to their mailboxes.
    pub(crate) fn settle(&self, mut outcomes: Vec<(Arc<Slot>, u64, Outcome)>) {
        let Some(mailboxes) = self.mailboxes().filter(|_| !outcomes.is_empty()) else {
            return;
        };
        let mut dirty = Vec::new();
        mailboxes.settle(&mut outcomes, &mut dirty);
        for peer in dirty {
            peer.flush();
        }
    }

    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        Some(&self.stored.as_ref()?.store)
    }

    pub(crate) fn mailboxes(&self) -> Option<&Arc<Mailboxes>> {
        Some(&self.stored.as_ref()?.mailboxes)
    }
}

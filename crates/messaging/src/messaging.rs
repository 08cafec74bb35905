//! [`Messaging`]: the connections of a node, their calls and its mailboxes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use mailbox::Again;
use model::{ErrorCode, Failure, limits};
use platform::Platform;
use quota_service::{QuotaService, Quotas};
use routing::ConnectionId;
use store::Store;

use crate::description::Descriptions;
use crate::lane::Caller;
use crate::mailboxes::{self, Mailboxes, Outcome, Slot};
use crate::names::Names;
use crate::outlet::Outgoing;
use crate::peer::{Facts, Peer};
use crate::router::Router;

/// The limits of connections.
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

/// The connections of a node, their calls and its mailboxes.
pub struct Messaging {
    pub(crate) platform: Arc<Platform>,
    pub(crate) limits: Limits,
    pub(crate) router: Arc<Router>,
    pub(crate) quotas: Arc<QuotaService>,
    pub(crate) descriptions: Descriptions,
    /// The mailboxes; `None` for a node without storage.
    pub(crate) mailboxes: Option<Arc<Mailboxes>>,
    /// The names of a listener with its own name table.
    names: Option<Arc<dyn Names>>,
    /// The number of the next connection.
    pub(crate) next_connection: AtomicU64,
    draining: AtomicBool,
}

impl Messaging {
    /// Returns messaging without connections. `names` are those of a listener with its own name
    /// table, for monitoring. `storage` is the store of the mailboxes, with their options; without
    /// it there are none.
    pub fn new(
        platform: Arc<Platform>,
        limits: Limits,
        quotas: Arc<QuotaService>,
        names: Option<Arc<dyn Names>>,
        storage: Option<(Arc<Store>, mailboxes::Options)>,
    ) -> Self {
        let router = Arc::new(Router::new(platform.clone()));
        let mailboxes = storage.map(|(store, options)| {
            let (platform, router) = (platform.clone(), router.clone());
            Arc::new(Mailboxes::new(platform, store, router, options))
        });
        Self {
            platform,
            limits,
            router,
            quotas,
            descriptions: Descriptions::default(),
            mailboxes,
            names,
            next_connection: AtomicU64::new(1),
            draining: AtomicBool::new(false),
        }
    }

    /// Returns the limits of connections.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the quotas that clients are charged by.
    #[inline]
    pub(crate) fn quotas(&self) -> Quotas<'_> {
        self.quotas.quotas()
    }

    /// Returns the mailboxes; `None` for a node without storage.
    pub fn mailboxes(&self) -> Option<&Arc<Mailboxes>> {
        self.mailboxes.as_ref()
    }

    /// Returns the names of the listener with its own name table.
    pub fn names(&self) -> Option<&dyn Names> {
        self.names.as_deref()
    }

    /// Returns whether new connections are refused.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Refuses new connections and asks every client to finish within `drain_ms`.
    pub fn drain(&self, drain_ms: u32) {
        let peers: Vec<_> = {
            let peers = self.router.peers.lock();
            self.draining.store(true, Ordering::Release);
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
        let peer = self.router.peer(ConnectionId(id))?;
        Some(peer.facts.clone())
    }

    /// Closes the connections for which `reason` returns a text, which is sent to the client.
    /// Returns their number.
    pub fn dismiss(&self, code: ErrorCode, reason: impl Fn(&Facts) -> Option<String>) -> usize {
        let with_reason = |peer: &Arc<Peer>| Some((peer.clone(), reason(&peer.facts)?));
        let peers = self.router.peers.lock();
        let dismissed: Vec<_> = peers.values().filter_map(with_reason).collect();
        drop(peers);
        for (peer, reason) in &dismissed {
            self.platform.counters.count_failure(code);
            peer.client().dismiss(Failure::new(code, reason));
        }
        dismissed.len()
    }

    /// Closes every connection.
    pub fn close_all(&self) {
        let peers: Vec<_> = self.router.peers.lock().values().cloned().collect();
        for peer in peers {
            peer.client().close();
        }
    }

    /// Ends calls whose deadline has passed, releases senders that wait for stopped clients, and
    /// processes the loaded mailboxes. Returns true if there is more to do.
    pub fn sweep(&self) -> bool {
        let now_ns = self.platform.now_ns();
        let listed = std::mem::take(&mut *self.router.to_sweep.lock());
        let mut still_listed = Vec::new();
        let mut outcomes = Vec::new();
        for peer in listed.iter().filter_map(Weak::upgrade) {
            let (expired, pressures) = {
                let mut lane = peer.lane.lock();
                let expired = lane.calls.expire(now_ns);
                let pressures = lane.release_if_stopped(now_ns);
                lane.listed = lane.needs_sweep();
                if lane.listed {
                    still_listed.push(Arc::downgrade(&peer));
                }
                (expired, pressures)
            };
            for (ticket, call) in expired {
                peer.push_now(Outgoing::Cancel { ticket });
                self.fail(call.caller, DEADLINE, Again::Now, &mut outcomes);
            }
            drop(pressures);
        }
        self.settle(outcomes);
        let is_mailbox = self.mailboxes.as_ref().is_some_and(Mailboxes::sweep);
        let mut to_sweep = self.router.to_sweep.lock();
        to_sweep.append(&mut still_listed);
        is_mailbox || !to_sweep.is_empty()
    }

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
        let mailboxes = self.mailboxes.as_ref();
        let Some(mailboxes) = mailboxes.filter(|_| !outcomes.is_empty()) else {
            return;
        };
        let mut dirty = Vec::new();
        mailboxes.settle(&mut outcomes, &mut dirty);
        for peer in dirty {
            peer.flush();
        }
    }
}

const DEADLINE: Failure<'static> = Failure::new(
    ErrorCode::DeadlineExceeded,
    "the responder did not answer in time",
)
.after_sending();

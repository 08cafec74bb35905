//! The node: its services behind one handle.

mod open;

use std::sync::Arc;
use std::task::{Context, Poll};

use conversation_service::Conversations;
use messaging::Messaging;
use platform::{Counters, Membership, Overloaded, Pending, Platform, Ports, Tracer, VerbDurations};
use quota_service::{QuotaService, Quotas};
use store::{Health, Store, Streams};
use topic_service::Topics;
use views::Views;
use webhooks::Webhooks;

use crate::history::History;

struct Inner {
    platform: Arc<Platform>,
    messaging: Arc<Messaging>,
    /// The source of socket counts, if there is one.
    sockets: Option<SocketsSource>,
    quotas: Arc<QuotaService>,
    history: History,
    /// The storage and the services that need it; `None` for a node without a journal.
    stored: Option<StoredServices>,
}

/// The storage and the services that need it.
struct StoredServices {
    store: Arc<Store>,
    health: Health,
    streams: Streams,
    topics: Topics,
    conversations: Conversations,
    /// The views of conversations, if enabled.
    views: Option<Views>,
    /// The webhooks, if enabled.
    webhooks: Option<Webhooks>,
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
    inner: Arc<Inner>,
}

impl Node {
    /// Returns the connections, their calls and the mailboxes.
    pub fn messaging(&self) -> &Arc<Messaging> {
        &self.inner.messaging
    }

    /// Returns the node's quotas.
    pub fn quotas(&self) -> Quotas<'_> {
        self.inner.quotas.quotas()
    }

    /// Returns the topics; `None` for a node without storage.
    pub fn topics(&self) -> Option<Topics> {
        Some(self.inner.stored.as_ref()?.topics.clone())
    }

    /// Returns the members of the node's cluster; a node alone is the only one.
    pub fn membership(&self) -> &dyn Membership {
        &*self.inner.platform.membership
    }

    /// Returns true if the node is a member of a cluster.
    pub fn is_clustered(&self) -> bool {
        self.inner.platform.membership.is_clustered()
    }

    /// Returns an error text if the node is a member of a cluster, which does not serve `what` yet.
    pub fn refused_on_cluster(&self, what: &str) -> Option<String> {
        self.is_clustered().then(|| {
            format!("a cluster serves topics and streams only; {what} need a node that is alone")
        })
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

    /// Returns the health of the storage; `None` for a node without storage.
    pub fn health(&self) -> Option<&Health> {
        Some(&self.inner.stored.as_ref()?.health)
    }

    /// Returns the reason why the node is not ready, if it is not.
    pub fn unready(&self) -> Option<String> {
        if self.messaging().is_draining() {
            let reason =
                "the node is draining: it finishes requests in progress and accepts no new ones";
            return Some(reason.to_owned());
        }
        self.health()?.unready()
    }

    /// Returns the number of streams of all kinds that were ever created; `None` for a node without
    /// storage.
    pub fn stream_count(&self) -> Option<usize> {
        Some(self.inner.stored.as_ref()?.store.stream_count())
    }

    /// Returns the number of records of the directory of streams that this start upgraded to the
    /// current storage format; `None` if it has not upgraded any.
    pub fn upgraded_names(&self) -> Option<u64> {
        self.inner.stored.as_ref()?.store.upgraded()
    }

    /// Returns the raw streams; `None` for a node without storage.
    pub fn streams(&self) -> Option<&Streams> {
        Some(&self.inner.stored.as_ref()?.streams)
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

    /// Returns the node's ports.
    pub fn ports(&self) -> &Ports {
        &self.inner.platform.ports
    }

    /// Returns the node's counters.
    pub fn counters(&self) -> &Counters {
        &self.inner.platform.counters
    }

    /// Returns the source of spans; `None` if none are exported.
    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.inner.platform.tracer.as_ref()
    }

    /// Returns the durations of requests over the native protocol.
    pub fn durations(&self) -> &VerbDurations {
        &self.inner.platform.durations
    }

    /// Returns the last hour of the node in numbers.
    pub fn history(&self) -> &History {
        &self.inner.history
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

    /// Ready when there is something to sweep after there was nothing. Only one task may wait.
    pub fn poll_sweep_needed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.platform.poll_sweep_needed(cx)
    }

    /// Does the periodic work of every service: ends calls whose deadline has passed, releases
    /// senders that wait for stopped clients, delivers due messages, and expires what is too old.
    /// The shell calls it several times a second as long as it returns true, which means that there
    /// is more to do.
    pub fn sweep(&self) -> bool {
        let is_messaging = self.inner.messaging.sweep();
        let is_quota = self.quotas().sweep();
        let is_stored = self.inner.stored.as_ref().is_some_and(|services| {
            let is_topic = services.topics.sweep();
            services.conversations.sweep() || is_topic
        });
        is_messaging || is_quota || is_stored
    }
}

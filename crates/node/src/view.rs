//! The monitoring view of a node: its connections and subscriptions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::node::Node;
use crate::ports::Names;

/// A name and its subscribers.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// `org/namespace/agent`.
    pub name: String,
    /// The protocol of the subscribers: `native` (which includes HTTP) or `slim`. The same name in
    /// another protocol is a different name.
    pub protocol: &'static str,
    /// Number of messages that found no subscriber. Forgotten once 1,024 other names were used and
    /// released since.
    pub undeliverable: u64,
    /// The instances.
    pub subscribers: Vec<SubscriberView>,
}

/// An instance of a name.
#[derive(Clone, Debug)]
pub struct SubscriberView {
    /// The instance.
    pub instance: String,
    /// The number of its connection.
    pub connection: u64,
    /// The remote address.
    pub remote: String,
    /// Number of messages delivered.
    pub delivered: u64,
    /// Number of messages dropped because it was full.
    pub dropped: u64,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// The number.
    pub id: u64,
    /// The agent's name, if it gave one.
    pub name: Option<String>,
    /// The authenticated subject, to which quotas and halts apply.
    pub principal: String,
    /// The remote address.
    pub remote: String,
    /// The listener that accepted it.
    pub door: &'static str,
    /// The time of its opening, in milliseconds since 1970-01-01 UTC.
    pub opened_unix_ms: u64,
    /// Number of subscriptions.
    pub subscriptions: usize,
    /// Number of calls that it has not answered.
    pub pending_calls: usize,
    /// Bytes queued for it.
    pub queued_bytes: usize,
}

impl Node {
    /// Returns the names of the listener with its own name table.
    pub fn names(&self) -> Option<&dyn Names> {
        self.inner.names.as_deref()
    }

    /// Returns, in order, all names with subscribers or senders, and recently released names that
    /// messages missed.
    pub fn agents(&self) -> Vec<AgentView> {
        let table = self.inner.router.table.read();
        let view = |(base, undeliverable, subscribers): (&Arc<str>, u64, &[_])| AgentView {
            name: base.to_string(),
            protocol: "native",
            undeliverable,
            subscribers: subscribers.iter().map(subscriber_view).collect(),
        };
        let mut agents: Vec<_> = table.names().into_iter().map(view).collect();
        drop(table);
        if let Some(names) = self.names() {
            agents.extend(names.agents());
            agents.sort_by(|one, other| one.name.cmp(&other.name));
        }
        agents
    }

    /// Returns every open connection, oldest first.
    pub fn connections(&self) -> Vec<ConnectionView> {
        let peers: Vec<_> = self.inner.router.peers.lock().values().cloned().collect();
        let view = |peer: &Arc<crate::peer::Peer>| ConnectionView {
            id: peer.id.0,
            name: peer.facts.name.as_ref().map(|name| name.to_string()),
            principal: peer.facts.principal.subject().to_owned(),
            remote: peer.facts.remote.clone(),
            door: peer.facts.door,
            opened_unix_ms: peer.opened_unix_ms,
            subscriptions: peer.subscriptions.lock().len(),
            pending_calls: peer.lane.lock().calls.len(),
            queued_bytes: peer.queued_size(),
        };
        peers.iter().map(view).collect()
    }

    /// Returns the number of subscriptions.
    pub fn subscription_count(&self) -> usize {
        let others = self.names().map_or(0, Names::subscription_count);
        self.inner.router.table.read().subscription_count() + others
    }
}

fn subscriber_view(subscriber: &routing::Subscriber<Arc<crate::peer::Peer>>) -> SubscriberView {
    SubscriberView {
        instance: subscriber.name.instance().unwrap_or_default().to_owned(),
        connection: subscriber.connection.0,
        remote: subscriber.peer.facts.remote.clone(),
        delivered: subscriber.delivered.load(Ordering::Relaxed),
        dropped: subscriber.dropped.load(Ordering::Relaxed),
    }
}

//! What the node shows of itself: who is connected, who is subscribed to what.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::handle::Handle;
use crate::ports::Names;

/// A name and who is subscribed to it.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// `org/namespace/agent`.
    pub name: String,
    /// The protocol of those who have the name: `native` (HTTP too) or `slim`. A name of one protocol is another
    /// name in the other.
    pub protocol: &'static str,
    /// Messages that found nobody. Forgotten when 1,024 other names were used and given up since.
    pub undeliverable: u64,
    /// Its instances.
    pub subscribers: Vec<SubscriberView>,
}

/// One instance.
#[derive(Clone, Debug)]
pub struct SubscriberView {
    /// The instance.
    pub instance: String,
    /// Its connection.
    pub connection: u64,
    /// Where that is.
    pub remote: String,
    /// Messages handed over.
    pub delivered: u64,
    /// Messages it was too full for.
    pub dropped: u64,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// Its number.
    pub id: u64,
    /// The agent's name, when it gave one.
    pub name: Option<String>,
    /// The name that it has proven, and that is charged and halted.
    pub principal: String,
    /// Where it is.
    pub remote: String,
    /// The door it came in by.
    pub door: &'static str,
    /// When it was opened, in milliseconds since 1970-01-01 UTC.
    pub opened_unix_ms: u64,
    /// Its subscriptions.
    pub subscriptions: usize,
    /// Calls it has been handed and has not answered.
    pub pending_calls: usize,
    /// Bytes queued for it.
    pub queued_bytes: usize,
}

impl Handle {
    /// From now on a door's names are shown beside the node's own. Only the first caller's are taken.
    pub fn show_names_of(&self, door: Arc<dyn Names>) {
        // One door has names of its own.
        let _ = self.inner.names.set(door);
    }

    /// The names of a door that has names of its own.
    pub fn names(&self) -> Option<&dyn Names> {
        self.inner.names.get().map(|names| &**names)
    }

    /// Every name that has subscribers or senders, and the newest that had and that messages missed, in
    /// order.
    pub fn agents(&self) -> Vec<AgentView> {
        let table = self.inner.table.read();
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

    /// Every open connection, oldest first.
    pub fn connections(&self) -> Vec<ConnectionView> {
        let peers: Vec<_> = self.inner.peers.lock().values().cloned().collect();
        let view = |peer: &Arc<crate::peer::Peer>| ConnectionView {
            id: peer.id.0,
            name: peer.facts.name.as_ref().map(|name| name.to_string()),
            principal: peer.facts.principal.subject().to_owned(),
            remote: peer.facts.remote.clone(),
            door: peer.facts.door,
            opened_unix_ms: peer.opened_unix_ms,
            subscriptions: peer.subscriptions.lock().len(),
            pending_calls: peer.lane.lock().calls.len(),
            queued_bytes: peer.outlet.queued_size(),
        };
        peers.iter().map(view).collect()
    }

    /// Count of subscriptions.
    pub fn subscription_count(&self) -> usize {
        let others = self.names().map_or(0, Names::subscription_count);
        self.inner.table.read().subscription_count() + others
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

//! The monitoring view of messaging: connections and subscriptions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::Name;
use routing::{ConnectionId, NameView, Subscriber};

use crate::description::compare_versions;
use crate::messaging::Messaging;
use crate::names::{AgentView, AgentsPage, AgentsWanted, Names, SubscriberView};
use crate::peer::Peer;

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

impl Messaging {
    /// Returns, in order, all names with subscribers or senders, and recently released names that
    /// messages missed.
    pub fn agents(&self) -> Vec<AgentView> {
        let table = self.router.table.read();
        let mut agents: Vec<_> = table.names().into_iter().map(agent_view).collect();
        drop(table);
        if let Some(names) = self.names() {
            agents.extend(names.agents());
            agents.sort_by(|one, other| one.name.cmp(&other.name));
        }
        agents
    }

    /// Returns a page of [`Messaging::agents`]: names with the prefix behind `after`, at most `limit`.
    pub fn agents_page(&self, wanted: &AgentsWanted<'_>) -> AgentsPage {
        let mut page = AgentsPage::default();
        let others = self.names().map(|names| names.agents()).unwrap_or_default();
        let others = others.into_iter().filter(|it| wanted.has_prefix(&it.name));
        let others: Vec<_> = others.collect();
        for other in &others {
            page.count(&other.name, other.subscribers.len());
        }
        let table = self.router.table.read();
        // One more than the page holds: whether there is another page.
        let names = table.first_names(wanted.limit.saturating_add(1), |(base, _, subscribers)| {
            if !wanted.has_prefix(base) {
                return false;
            }
            page.count(base, subscribers.len());
            wanted.is_behind(base)
        });
        let mut agents: Vec<_> = names.into_iter().map(agent_view).collect();
        drop(table);
        agents.extend(others.into_iter().filter(|it| wanted.is_behind(&it.name)));
        agents.sort_by(|one, other| one.name.cmp(&other.name));
        page.has_more = agents.len() > wanted.limit;
        agents.truncate(wanted.limit);
        page.agents = agents;
        page
    }

    /// Returns a name with its subscribers; `None` if it has none.
    pub fn agent(&self, name: &Name) -> Option<AgentView> {
        let table = self.router.table.read();
        let view = table.name(name.base()).map(agent_view);
        view.filter(|view| !view.subscribers.is_empty())
    }

    /// Returns every open connection, oldest first.
    pub fn connections(&self) -> Vec<ConnectionView> {
        let peers: Vec<_> = self.router.peers.lock().values().cloned().collect();
        peers.iter().map(connection_view).collect()
    }

    /// Returns the open connections with higher numbers than `after`, oldest first, at most `limit`,
    /// and whether there are more.
    pub fn connections_page(&self, after: u64, limit: usize) -> (Vec<ConnectionView>, bool) {
        let peers = self.router.peers.lock();
        let behind = (
            std::ops::Bound::Excluded(ConnectionId(after)),
            std::ops::Bound::Unbounded,
        );
        let mut newer = peers.range(behind).map(|(_, peer)| peer.clone());
        let page: Vec<_> = newer.by_ref().take(limit).collect();
        let has_more = newer.next().is_some();
        drop(newer);
        drop(peers);
        (page.iter().map(connection_view).collect(), has_more)
    }

    /// Returns the number of open connections.
    pub fn connection_count(&self) -> usize {
        self.router.peers.lock().len()
    }

    /// Returns the number of calls that responders have not answered.
    pub fn pending_call_count(&self) -> usize {
        let peers = self.router.peers.lock();
        let counts = peers.values().map(|peer| peer.lane.lock().calls.len());
        counts.sum()
    }

    /// Returns the number of subscriptions.
    pub fn subscription_count(&self) -> usize {
        let others = self.names().map_or(0, Names::subscription_count);
        self.router.table.read().subscription_count() + others
    }
}

fn connection_view(peer: &Arc<Peer>) -> ConnectionView {
    ConnectionView {
        id: peer.id.0,
        name: peer.facts.name.as_ref().map(|name| name.to_string()),
        principal: peer.facts.principal.subject().to_owned(),
        remote: peer.facts.remote.clone(),
        door: peer.facts.door,
        opened_unix_ms: peer.opened_unix_ms,
        subscriptions: peer.subscriptions.lock().len(),
        pending_calls: peer.lane.lock().calls.len(),
        queued_bytes: peer.queued_size(),
    }
}

fn agent_view((base, undeliverable, subscribers): NameView<'_, Arc<Peer>>) -> AgentView {
    let subscribers: Vec<_> = subscribers.iter().map(subscriber_view).collect();
    let described = subscribers
        .iter()
        .filter_map(|it| Some((it.description.as_ref()?, it.connection)));
    // Of several with the same version, the one of the newest connection is returned.
    let newest = described.max_by(|(one, at), (other, other_at)| {
        compare_versions(&one.version, &other.version).then(at.cmp(other_at))
    });
    AgentView {
        name: base.to_string(),
        protocol: "native",
        undeliverable,
        description: newest.map(|(description, _)| description.clone()),
        subscribers,
    }
}

fn subscriber_view(subscriber: &Subscriber<Arc<Peer>>) -> SubscriberView {
    SubscriberView {
        instance: subscriber.name.instance().unwrap_or_default().to_owned(),
        connection: subscriber.connection.0,
        remote: subscriber.peer.facts.remote.clone(),
        delivered: subscriber.delivered.load(Ordering::Relaxed),
        dropped: subscriber.dropped.load(Ordering::Relaxed),
        description: subscriber
            .peer
            .subscriptions
            .lock()
            .get(&subscriber.name)
            .cloned()
            .flatten(),
    }
}

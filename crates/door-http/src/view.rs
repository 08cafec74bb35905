//! Agents and connections of the node as JSON, for HTTP and for the node's own agent.

use messaging::{AgentView, AgentsPage, AgentsWanted, ConnectionView, Description, SubscriberView};
use node::Node;
use serde_json::{Value, json};

/// Returns `{"agents": [...]}` in the order of the names.
pub fn agents_json(node: &Node) -> Value {
    let agents: Vec<_> = node.messaging().agents().into_iter().map(agent).collect();
    json!({ "agents": agents })
}

/// Returns `{"connections": [...]}`, oldest first.
pub fn connections_json(node: &Node) -> Value {
    let connections: Vec<_> = node
        .messaging()
        .connections()
        .into_iter()
        .map(connection)
        .collect();
    json!({ "connections": connections })
}

/// Most instances of a name in a page.
const INSTANCES_MAX: usize = 1_000;

/// Longest description in a summary, in characters.
const SUMMARY_MAX: usize = 200;

/// Returns a page of names: in full with their first instances, or in short.
pub(crate) fn agents_page_json(node: &Node, wanted: &AgentsWanted<'_>, is_short: bool) -> Value {
    let AgentsPage {
        agents,
        has_more,
        connected,
        instances,
    } = node.messaging().agents_page(wanted);
    let next = agents.last().filter(|_| has_more);
    let next = next.map(|agent| agent.name.clone());
    let show = if is_short { summary } else { page_agent };
    let agents: Vec<_> = agents.into_iter().map(show).collect();
    let mut page = json!({
        "agents": agents,
        "connected": connected,
        "connected_instances": instances,
    });
    if let Some(next) = next {
        page["next"] = json!(next);
    }
    page
}

/// Returns a page of connections.
pub(crate) fn connections_page_json(node: &Node, after: u64, limit: usize) -> Value {
    let (connections, has_more) = node.messaging().connections_page(after, limit);
    let next = connections.last().filter(|_| has_more).map(|it| it.id);
    let connections: Vec<_> = connections.into_iter().map(connection).collect();
    let mut page = json!({
        "connections": connections,
        "total": node.messaging().connection_count(),
    });
    if let Some(next) = next {
        page["next"] = json!(next);
    }
    page
}

fn page_agent(mut view: AgentView) -> Value {
    let count = view.subscribers.len();
    view.subscribers.truncate(INSTANCES_MAX);
    let mut agent = agent(view);
    agent["instance_count"] = json!(count);
    agent
}

/// Returns a name without its instances and methods: their numbers instead.
fn summary(view: AgentView) -> Value {
    let sum = |of: fn(&SubscriberView) -> u64| view.subscribers.iter().map(of).sum::<u64>();
    let mut agent = json!({
        "name": view.name,
        "protocol": view.protocol,
        "undeliverable": view.undeliverable,
        "instance_count": view.subscribers.len(),
        "delivered": sum(|it| it.delivered),
        "dropped": sum(|it| it.dropped),
    });
    if let Some(description) = &view.description {
        agent["version"] = json!(description.version);
        let text: String = description.text.chars().take(SUMMARY_MAX).collect();
        agent["description"] = json!(text);
        agent["method_count"] = json!(description.methods.len());
    }
    agent
}

fn agent(view: AgentView) -> Value {
    let AgentView {
        name,
        protocol,
        undeliverable,
        description,
        subscribers,
    } = view;
    let newest = description.as_deref();
    let instances: Vec<_> = subscribers
        .into_iter()
        .map(|view| subscriber(view, newest))
        .collect();
    let mut agent = json!({
        "name": name,
        "protocol": protocol,
        "undeliverable": undeliverable,
        "instances": instances,
    });
    if let Some(description) = newest {
        let methods = description.methods.iter();
        let methods: Vec<_> = methods.map(|method| method.name.as_str()).collect();
        agent["version"] = json!(description.version);
        agent["description"] = json!(description.text);
        agent["methods"] = json!(methods);
    }
    agent
}

fn subscriber(view: SubscriberView, newest: Option<&Description>) -> Value {
    let SubscriberView {
        instance,
        connection,
        remote,
        delivered,
        dropped,
        description,
    } = view;
    let mut value = json!({
        "instance": instance,
        "connection": connection,
        "remote": remote,
        "delivered": delivered,
        "dropped": dropped,
    });
    if let Some(newest) = newest {
        let own = description.as_deref();
        value["version"] = json!(own.map(|it| &it.version));
        value["differs"] = json!(own != Some(newest));
    }
    value
}

fn connection(view: ConnectionView) -> Value {
    let ConnectionView {
        id,
        name,
        principal,
        remote,
        door,
        opened_unix_ms,
        subscriptions,
        pending_calls,
        queued_bytes,
    } = view;
    json!({
        "id": id,
        "name": name,
        "principal": principal,
        "remote": remote,
        "door": door,
        "opened_unix_ms": opened_unix_ms,
        "subscriptions": subscriptions,
        "pending_calls": pending_calls,
        "queued_bytes": queued_bytes,
    })
}

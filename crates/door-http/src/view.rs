//! Agents and connections of the node as JSON, for HTTP and for the node's own agent.

use messaging::{AgentView, ConnectionView, SubscriberView};
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

fn agent(view: AgentView) -> Value {
    let AgentView {
        name,
        protocol,
        undeliverable,
        subscribers,
    } = view;
    let instances: Vec<_> = subscribers.into_iter().map(subscriber).collect();
    json!({
        "name": name,
        "protocol": protocol,
        "undeliverable": undeliverable,
        "instances": instances,
    })
}

fn subscriber(view: SubscriberView) -> Value {
    let SubscriberView {
        instance,
        connection,
        remote,
        delivered,
        dropped,
    } = view;
    json!({
        "instance": instance,
        "connection": connection,
        "remote": remote,
        "delivered": delivered,
        "dropped": dropped,
    })
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

//! Agents and connections of the node as JSON, for HTTP and for the node's own agent.

use messaging::{AgentView, ConnectionView, Description, SubscriberView};
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

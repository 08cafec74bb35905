//! `telpher agents` and `telpher connections`: lists from the node's own agent.

use std::time::Duration;

use client::{Bytes, Client};
use console::output::{self, Format, one_line, table};
use console::{Environment, Exit, Failure, utc};
use model::Name;
use serde::Serialize;
use serde_json::Value;
use serve::SYSTEM_AGENT;

use super::target::{NodeArgs, agent_name, block_on, report_call_failure};

/// Deadline of calls to the node's own agent.
const LIMIT: Duration = Duration::from_secs(30);

const AGENTS: &str = "\
Examples:
  telpher agents
  telpher agents --json | jq '.agents[].name'
  telpher agents acme/demo/sum           what the agent says about itself and its methods

PROTOCOL is `native` for names of the native protocol and of HTTP, and `slim` for names of SLIM \
applications. The same name in both protocols is two different names; `telpher bridge slim` \
connects them.

The node has agents of its own: `telpher/system/node` answers these commands, and \
`telpher/system/http` serves the routes of the HTTP listener. The table omits them unless --all is \
given; JSON always contains them.";

const CONNECTIONS: &str = "\
Examples:
  telpher connections                    list connections with address and start time
  telpher connections --all              include the node's own connection
  telpher connections --json";

/// List subscribed agents, their addresses, and messages that were not delivered
#[derive(Debug, clap::Args)]
#[command(after_help = AGENTS)]
pub(crate) struct AgentsArgs {
    /// Show what this agent says about itself
    #[arg(conflicts_with = "all")]
    agent: Option<String>,

    /// Include the node's own agents
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    node: NodeArgs,
}

/// List the connections of a node
#[derive(Debug, clap::Args)]
#[command(after_help = CONNECTIONS)]
pub(crate) struct ConnectionsArgs {
    /// Include the node's own connection
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run_agents(args: AgentsArgs, environment: &Environment) -> Result<(), Failure> {
    if let Some(agent) = &args.agent {
        return describe(&args.node, environment, &agent_name(agent)?);
    }
    let table = |value: &Value| agents_table(value, args.all);
    show(&args.node, environment, "agents", table)
}

pub(crate) fn run_connections(
    args: ConnectionsArgs,
    environment: &Environment,
) -> Result<(), Failure> {
    let table = |value: &Value| connections_table(value, args.all);
    show(&args.node, environment, "connections", table)
}

/// Prints the description of an agent.
fn describe(node: &NodeArgs, environment: &Environment, name: &Name) -> Result<(), Failure> {
    block_on(async {
        let client = node.target.connect(environment).await?;
        let reply = call(&client, node.format, "agent", name.base(), LIMIT).await?;
        let value = parse(&reply)?;
        output::print(node.format, &value, &description(&value))
    })
}

/// Formats the description of an agent.
fn description(value: &Value) -> String {
    let mut out = text(&value["name"]);
    if let Some(version) = value["version"].as_str() {
        out += &format!(" {}", one_line(version));
    }
    out.push('\n');
    if let Some(text) = value["description"].as_str() {
        out += &format!("{}\n", one_line(text));
    }
    for method in rows(value, "methods") {
        let name = match method["name"].as_str() {
            Some("") | None => "(plain messages)".to_owned(),
            Some(name) => one_line(name),
        };
        out += &format!("\n{name}");
        if method["stream"] == true {
            out += " (answers with items)";
        }
        out.push('\n');
        if let Some(text) = method["description"].as_str() {
            out += &format!("  {}\n", one_line(text));
        }
        for member in ["input", "output"] {
            if !method[member].is_null() {
                out += &format!("  {member}: {}\n", method[member]);
            }
        }
    }
    let instances = rows(value, "instances").iter();
    let lines: Vec<_> = instances
        .map(|instance| {
            let differs = match instance["differs"] == true {
                true => "differs",
                false => "-",
            };
            let keys = ["instance", "version"].map(|key| text(&instance[key]));
            let [instance, version] = keys;
            [instance, version, differs.to_owned()]
        })
        .collect();
    out.push('\n');
    out + &table(["INSTANCE", "VERSION", "DESCRIPTION"], &lines)
}

fn show(
    node: &NodeArgs,
    environment: &Environment,
    method: &str,
    table: impl FnOnce(&Value) -> String,
) -> Result<(), Failure> {
    block_on(async {
        let client = node.target.connect(environment).await?;
        let value = ask(&client, node.format, method, &()).await?;
        output::print(node.format, &value, &table(&value))
    })
}

/// Calls a method of the node's own agent.
pub(super) async fn ask(
    client: &Client,
    format: Format,
    method: &str,
    request: &impl Serialize,
) -> Result<Value, Failure> {
    ask_within(client, format, method, request, LIMIT).await
}

/// Calls a method of the node's own agent with a deadline.
pub(super) async fn ask_within(
    client: &Client,
    format: Format,
    method: &str,
    request: &impl Serialize,
    limit: Duration,
) -> Result<Value, Failure> {
    let body = serde_json::json!(request).to_string();
    parse(&call(client, format, method, &body, limit).await?)
}

/// Calls a method of the node's own agent, and returns the answer.
async fn call(
    client: &Client,
    format: Format,
    method: &str,
    body: &str,
    limit: Duration,
) -> Result<Bytes, Failure> {
    let name: Name = agent_name(SYSTEM_AGENT)?;
    let caller = client
        .caller(name.as_str())
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let call = caller.call(method, body).deadline(limit);
    call.await
        .map_err(|error| report_call_failure(format, &name, &error))
}

fn parse(reply: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(reply).map_err(|error| {
        let message = format!("the node's answer is not JSON: {error}");
        Failure::new(Exit::Failed, message).hint("compare the versions of the command and the node")
    })
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

pub(super) fn rows<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// True for the node's own agents and connection: their names begin with `telpher/`.
fn is_own(value: &Value) -> bool {
    let name = value["name"].as_str().unwrap_or_default();
    name.starts_with("telpher/")
}

fn agents_table(value: &Value, all: bool) -> String {
    let head = [
        "NAME",
        "PROTOCOL",
        "INSTANCE",
        "FROM",
        "DELIVERED",
        "DROPPED",
        "UNDELIVERABLE",
    ];
    let mut lines = Vec::new();
    let agents = rows(value, "agents").iter();
    for agent in agents.filter(|agent| all || !is_own(agent)) {
        let (name, protocol) = (text(&agent["name"]), text(&agent["protocol"]));
        let missed = text(&agent["undeliverable"]);
        let line = |cells: [String; 4]| {
            let [instance, from, delivered, dropped] = cells;
            [
                name.clone(),
                protocol.clone(),
                instance,
                from,
                delivered,
                dropped,
                missed.clone(),
            ]
        };
        let instances = rows(agent, "instances");
        if instances.is_empty() {
            lines.push(line(["(none)", "-", "0", "0"].map(str::to_owned)));
        }
        for instance in instances {
            let keys = ["instance", "remote", "delivered", "dropped"];
            lines.push(line(keys.map(|key| text(&instance[key]))));
        }
    }
    table(head, &lines)
}

fn connections_table(value: &Value, all: bool) -> String {
    let head = [
        "ID",
        "NAME",
        "FROM",
        "DOOR",
        "SINCE",
        "SUBSCRIPTIONS",
        "PENDING",
        "QUEUED",
    ];
    let connections = rows(value, "connections").iter();
    let line = |connection: &Value| {
        let opened_ms = connection["opened_unix_ms"].as_u64().unwrap_or(0);
        [
            text(&connection["id"]),
            text(&connection["name"]),
            text(&connection["remote"]),
            text(&connection["door"]),
            utc::format(opened_ms / 1000),
            text(&connection["subscriptions"]),
            text(&connection["pending_calls"]),
            text(&connection["queued_bytes"]),
        ]
    };
    let lines: Vec<_> = connections
        .filter(|connection| all || !is_own(connection))
        .map(line)
        .collect();
    table(head, &lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn agent_table_has_a_row_per_instance_and_unsubscribed_name() {
        let instance = json!({
            "instance": "i-1", "connection": 3, "remote": "127.0.0.1:5", "delivered": 12,
            "dropped": 0,
        });
        let value = json!({ "agents": [
            { "name": "a/b/c", "protocol": "native", "undeliverable": 0, "instances": [instance] },
            { "name": "a/b/gone", "protocol": "slim", "undeliverable": 7, "instances": [] },
            {
                "name": SYSTEM_AGENT, "protocol": "native", "undeliverable": 0,
                "instances": [instance],
            },
        ]});
        insta::assert_snapshot!(agents_table(&value, false));
        assert!(agents_table(&value, true).contains(SYSTEM_AGENT));
    }

    #[test]
    fn connection_table_omits_the_commands_own_connection() {
        let connection = |name: &str| {
            json!({
                "id": 1, "name": name, "remote": "127.0.0.1:5", "door": "native",
                "opened_unix_ms": 1_700_000_000_123_u64, "subscriptions": 2,
                "pending_calls": 0, "queued_bytes": 65_536,
            })
        };
        let value = json!({ "connections": [connection(SYSTEM_AGENT), connection("a/b/c")] });
        insta::assert_snapshot!(connections_table(&value, false));
    }
}

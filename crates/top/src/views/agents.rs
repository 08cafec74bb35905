//! Agents and their instances.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::sample::{History, Question, Sample, Values, count, entries, text};
use crate::table::{Cell, Column, Level, Table, column};

const AGENTS: &[Column] = &[
    column("AGENT", "agent", 0),
    column("INSTANCES", "instances", 3),
    column("IN FLIGHT", "in_flight", 2),
    column("DELIVERED/S", "delivered_per_second", 1),
    column("WAITING", "waiting", 1),
    column("OLDEST", "oldest_ms", 4),
    column("DEAD", "dead", 5),
    column("DROPPED", "dropped", 7),
    column("UNDELIVERABLE", "undeliverable", 8),
    column("DENIED", "denied", 6),
    column("DELIVERED", "delivered", 9),
    column("PROTOCOL", "protocol", 10),
];

const INSTANCES: &[Column] = &[
    column("INSTANCE", "instance", 0),
    column("IN FLIGHT", "in_flight", 1),
    column("DELIVERED/S", "delivered_per_second", 1),
    column("DELIVERED", "delivered", 2),
    column("DROPPED", "dropped", 3),
    column("FROM", "from", 2),
    column("CONNECTION", "connection", 5),
    column("VERSION", "version", 4),
];

/// The separator of name and protocol in a key. The same name in two protocols is two names.
const SEPARATOR: char = ' ';

/// Returns the key of an agent.
fn key(agent: &Value) -> String {
    let (name, protocol) = (text(&agent["name"]), text(&agent["protocol"]));
    format!("{name}{SEPARATOR}{protocol}")
}

/// Returns the name in the key of an agent.
pub(super) fn name(key: &str) -> &str {
    key.split(SEPARATOR).next().unwrap_or(key)
}

/// True for the node's own agents.
fn is_own(agent: &Value) -> bool {
    text(&agent["name"]).starts_with("telpher/")
}

fn sum(agent: &Value, member: &str) -> u64 {
    let instances = entries(agent, "instances").iter();
    instances.map(|it| count(&it[member])).sum()
}

/// Returns the numbers of unanswered calls by connection.
fn in_flight(sample: &Sample) -> BTreeMap<u64, u64> {
    let connections = sample.list(&Question::Connections, "connections").iter();
    connections
        .map(|it| (count(&it["id"]), count(&it["pending_calls"])))
        .collect()
}

/// Returns the deliveries of each agent in the sample before.
fn delivered_before(history: &History) -> BTreeMap<String, f64> {
    let before = history.before();
    let agents = before.map_or(&[][..], |it| it.list(&Question::Agents, "agents"));
    agents
        .iter()
        .map(|agent| (key(agent), sum(agent, "delivered") as f64))
        .collect()
}

/// Returns a row for each agent with instances, for each name that messages missed, and for each
/// mailbox with messages.
pub(super) fn agents(history: &History) -> Table {
    let now = history.now();
    let (in_flight, before) = (in_flight(now), delivered_before(history));
    let denied = Values::of(Some(now), &Question::Denied, "rows", "name", |it| {
        count(&it["count"]) as f64
    });
    let mut mailboxes: BTreeMap<&str, &Value> = now
        .list(&Question::Backlog, "mailboxes")
        .iter()
        .map(|it| (text(&it["name"]), it))
        .collect();
    let mut table = Table::new(AGENTS);
    let agents = now.list(&Question::Agents, "agents").iter();
    for agent in agents.filter(|agent| !is_own(agent)) {
        let (name, key) = (text(&agent["name"]), key(agent));
        // SLIM names have no mailboxes.
        let mailbox = match text(&agent["protocol"]) {
            "native" => mailboxes.remove(name),
            _ => None,
        };
        let instances = entries(agent, "instances");
        let connections: BTreeSet<_> = instances
            .iter()
            .map(|it| count(&it["connection"]))
            .collect();
        let calls = connections.iter().filter_map(|it| in_flight.get(it)).sum();
        let delivered = sum(agent, "delivered");
        let rate = history.rate(before.get(&key).copied(), Some(delivered as f64));
        let waiting = mailbox.map_or(0, |it| count(&it["messages"]));
        let dead = mailbox.map_or(0, |it| count(&it["dead"]));
        let dropped = sum(agent, "dropped");
        let undeliverable = count(&agent["undeliverable"]);
        let is_unserved = instances.is_empty() && waiting + undeliverable > 0;
        let cells = vec![
            Cell::text(name),
            Cell::Count(instances.len() as u64),
            Cell::Count(calls),
            Cell::number(rate),
            Cell::Count(waiting),
            oldest(mailbox),
            Cell::Count(dead),
            Cell::Count(dropped),
            Cell::Count(undeliverable),
            Cell::Count(denied.get(name).unwrap_or(0.0) as u64),
            Cell::Count(delivered),
            Cell::text(text(&agent["protocol"])),
        ];
        table.push(key, cells, Level::warning_if(is_unserved || dead > 0));
    }
    for (name, mailbox) in mailboxes {
        let waiting = count(&mailbox["messages"]);
        let dead = count(&mailbox["dead"]);
        let cells = vec![
            Cell::text(name),
            Cell::Count(0),
            Cell::Count(0),
            Cell::Empty,
            Cell::Count(waiting),
            oldest(Some(mailbox)),
            Cell::Count(dead),
            Cell::Count(0),
            Cell::Count(0),
            Cell::Count(denied.get(name).unwrap_or(0.0) as u64),
            Cell::Count(0),
            Cell::text("native"),
        ];
        let key = format!("{name}{SEPARATOR}native");
        table.push(key, cells, Level::warning_if(waiting + dead > 0));
    }
    table
}

fn oldest(mailbox: Option<&Value>) -> Cell {
    let age = mailbox.and_then(|it| it["oldest_age_ms"].as_f64());
    age.map_or(Cell::Empty, Cell::Millis)
}

/// Returns a row for each instance of an agent.
pub(super) fn instances(history: &History, wanted: &str) -> Table {
    let in_flight = in_flight(history.now());
    let instances_of = |sample: Option<&Sample>| {
        let agents = sample.map_or(&[][..], |it| it.list(&Question::Agents, "agents"));
        let agent = agents.iter().find(|agent| key(agent) == wanted);
        agent.map_or(Vec::new(), |it| entries(it, "instances").to_vec())
    };
    let id = |it: &Value| format!("{}{SEPARATOR}{}", text(&it["instance"]), it["connection"]);
    let before: BTreeMap<_, _> = instances_of(history.before())
        .iter()
        .map(|it| (id(it), count(&it["delivered"]) as f64))
        .collect();
    let mut table = Table::new(INSTANCES);
    for instance in instances_of(Some(history.now())) {
        let (id, delivered) = (id(&instance), count(&instance["delivered"]));
        let rate = history.rate(before.get(&id).copied(), Some(delivered as f64));
        let connection = count(&instance["connection"]);
        let dropped = count(&instance["dropped"]);
        let version = instance["version"].as_str();
        let cells = vec![
            Cell::text(text(&instance["instance"])),
            Cell::count(in_flight.get(&connection).copied()),
            Cell::number(rate),
            Cell::Count(delivered),
            Cell::Count(dropped),
            Cell::text(text(&instance["remote"])),
            Cell::Count(connection),
            version.map_or(Cell::Empty, Cell::text),
        ];
        table.push(id, cells, Level::Normal);
    }
    table
}

//! Mailboxes and their messages.

use console::utc;

use crate::sample::{History, Question, Values, count, entries, text};
use crate::table::{Cell, Column, Level, Table, column};

const MAILBOXES: &[Column] = &[
    column("MAILBOX", "mailbox", 0),
    column("WAITING", "waiting", 1),
    column("GROWTH/S", "growth_per_second", 2),
    column("OLDEST", "oldest_ms", 2),
    column("DEAD", "dead", 3),
    column("INSTANCES", "instances", 4),
];

const MESSAGES: &[Column] = &[
    column("OFFSET", "offset", 0),
    column("FROM", "from", 1),
    column("STATE", "state", 1),
    column("DELIVERIES", "deliveries", 2),
    column("WRITTEN", "written", 3),
    column("METHOD", "method", 4),
    column("BODY", "body", 2),
];

/// Longest body that is shown, in characters.
const BODY_LENGTH_MAX: usize = 200;

/// Returns a row for each mailbox with messages or dead letters.
pub(super) fn mailboxes(history: &History) -> Table {
    let now = history.now();
    let waiting = |it: &serde_json::Value| count(&it["messages"]) as f64;
    let question = &Question::Backlog;
    let before = Values::of(history.before(), question, "mailboxes", "name", waiting);
    let instances = Values::of(
        Some(now),
        &Question::Agents,
        "agents",
        "name",
        |it| match text(&it["protocol"]) {
            "native" => entries(it, "instances").len() as f64,
            _ => 0.0,
        },
    );
    let has_before = history
        .before()
        .is_some_and(|it| it.answers.contains_key(question));
    let mut table = Table::new(MAILBOXES);
    for mailbox in now.list(question, "mailboxes") {
        let name = text(&mailbox["name"]);
        let (messages, dead) = (count(&mailbox["messages"]), count(&mailbox["dead"]));
        // A mailbox that was empty before was not in the list.
        let earlier = has_before.then(|| before.get(name).unwrap_or(0.0));
        let instances = instances.get(name).unwrap_or(0.0) as u64;
        let age = mailbox["oldest_age_ms"].as_f64();
        let cells = vec![
            Cell::text(name),
            Cell::Count(messages),
            Cell::number(history.change(earlier, Some(messages as f64))),
            age.map_or(Cell::Empty, Cell::Millis),
            Cell::Count(dead),
            Cell::Count(instances),
        ];
        let is_unserved = messages > 0 && instances == 0;
        table.push(name, cells, Level::warning_if(is_unserved || dead > 0));
    }
    table
}

/// Returns a row for each of the oldest messages of a mailbox.
pub(super) fn messages(history: &History, mailbox: &str) -> Table {
    let question = Question::Messages(mailbox.to_owned());
    let mut table = Table::new(MESSAGES);
    for message in history.now().list(&question, "messages") {
        let body: String = match message["body"].as_str() {
            Some(body) => body.chars().take(BODY_LENGTH_MAX).collect(),
            None => "(not UTF-8)".to_owned(),
        };
        let cells = vec![
            Cell::Count(count(&message["offset"])),
            Cell::text(text(&message["sender"])),
            Cell::text(text(&message["state"])),
            Cell::Count(count(&message["deliveries"])),
            Cell::text(utc::format(count(&message["written_ms"]) / 1000)),
            Cell::text(text(&message["method"])),
            Cell::text(body),
        ];
        table.push(message["offset"].to_string(), cells, Level::Normal);
    }
    table
}

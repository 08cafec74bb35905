//! Limits, and the subjects of takes.
//!
//! A row is about a limit (its subject is `*`), about a bucket in use, or about a subject whose
//! takes were denied (its limit is empty).

use std::collections::BTreeMap;

use crate::sample::{History, Question, Values, count, text};
use crate::table::{Cell, Column, Level, Table, column};

const QUOTAS: &[Column] = &[
    column("SUBJECT", "subject", 0),
    column("LIMIT", "limit", 1),
    column("IN USE", "in_use", 2),
    column("ADMITTED/S", "admitted_per_second", 3),
    column("DENIED/S", "denied_per_second", 1),
    column("DENIED", "denied", 2),
    column("ADMITTED", "admitted", 4),
];

const LIMITS: &[Column] = &[
    column("LIMIT", "limit", 0),
    column("REMAINING", "remaining", 1),
    column("CAPACITY", "capacity", 1),
    column("UNIT", "unit", 2),
    column("FULL IN", "reset_ms", 3),
];

/// The subject of rows about a limit.
const ALL: &str = "*";

/// Returns the key of a row.
fn key(subject: &str, limit: &str) -> String {
    format!("{subject} {limit}")
}

/// Returns the subject of a row, if it is one agent.
pub(super) fn subject(key: &str) -> Option<String> {
    let (subject, _) = key.split_once(' ')?;
    (subject.matches('/').count() == 2).then(|| subject.to_owned())
}

/// Returns the rows of limits, of denied subjects and of buckets in use.
pub(super) fn quotas(history: &History) -> Table {
    let mut table = Table::new(QUOTAS);
    push_limits(history, &mut table);
    push_denied(history, &mut table);
    for row in history.now().list(&Question::Taken, "rows") {
        let (subject, limit) = (text(&row["name"]), text(&row["limit"]));
        let cells = vec![
            Cell::text(subject),
            Cell::text(limit),
            Cell::Count(count(&row["count"])),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
        ];
        table.push(key(subject, limit), cells, Level::Normal);
    }
    table
}

fn push_limits(history: &History, table: &mut Table) {
    const ADMITTED: &str = "telpher_quota_admitted_total";
    const DENIED: &str = "telpher_quota_denied_total";
    let now = &history.now().metrics;
    let mut limits: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for (index, metric) in [ADMITTED, DENIED].into_iter().enumerate() {
        for series in now.all(metric) {
            limits.entry(series.label("limit")).or_default()[index] = series.value;
        }
    }
    for (limit, [admitted, denied]) in limits {
        let rate = |metric, now| {
            let before = history.before();
            let before = before.and_then(|it| it.metrics.labelled(metric, "limit", limit));
            history.rate(before, Some(now))
        };
        let denied_rate = rate(DENIED, denied);
        let cells = vec![
            Cell::text(ALL),
            Cell::text(limit),
            Cell::Empty,
            Cell::number(rate(ADMITTED, admitted)),
            Cell::number(denied_rate),
            Cell::Count(denied as u64),
            Cell::Count(admitted as u64),
        ];
        table.push(key(ALL, limit), cells, level(denied_rate));
    }
}

fn push_denied(history: &History, table: &mut Table) {
    let (question, denied) = (&Question::Denied, |it: &serde_json::Value| {
        count(&it["count"]) as f64
    });
    let before = Values::of(history.before(), question, "rows", "name", denied);
    let has_before = history
        .before()
        .is_some_and(|it| it.answers.contains_key(question));
    for row in history.now().list(question, "rows") {
        let subject = text(&row["name"]);
        // A subject without denied takes was not in the list.
        let earlier = has_before.then(|| before.get(subject).unwrap_or(0.0));
        let rate = history.rate(earlier, Some(denied(row)));
        let cells = vec![
            Cell::text(subject),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::number(rate),
            Cell::Count(count(&row["count"])),
            Cell::Empty,
        ];
        table.push(key(subject, ""), cells, level(rate));
    }
}

fn level(denied_rate: Option<f64>) -> Level {
    Level::warning_if(denied_rate.is_some_and(|rate| rate > 0.0))
}

/// Returns a row for each limit of a subject.
pub(super) fn limits(history: &History, subject: &str) -> Table {
    let question = Question::Subject(subject.to_owned());
    let mut table = Table::new(LIMITS);
    for limit in history.now().list(&question, "limits") {
        let name = text(&limit["name"]);
        let remaining = limit["remaining"].as_f64();
        let cells = vec![
            Cell::text(name),
            Cell::number(remaining),
            Cell::count(limit["capacity"].as_u64()),
            Cell::text(text(&limit["unit"])),
            limit["reset_ms"].as_f64().map_or(Cell::Empty, Cell::Millis),
        ];
        let level = Level::warning_if(remaining.is_some_and(|it| it <= 0.0));
        table.push(name, cells, level);
    }
    table
}

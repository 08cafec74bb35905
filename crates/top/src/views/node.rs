//! The counters and gauges of a node.

use crate::metrics::quantile;
use crate::sample::History;
use crate::table::{Cell, Column, Level, Table, column};

const NODE: &[Column] = &[
    column("NUMBER", "number", 0),
    column("VALUE", "value", 1),
    column("PER SECOND", "per_second", 1),
];

/// Counters, with the metrics that each is the sum of.
const COUNTERS: &[(&str, &str)] = &[
    ("requests", "telpher_requests_total"),
    ("replies", "telpher_replies_total"),
    ("stream items", "telpher_stream_items_total"),
    ("sends", "telpher_sends_total"),
    ("writes", "telpher_writes_total"),
    ("delivered", "telpher_delivered_total"),
    ("dropped", "telpher_dropped_total"),
    ("undeliverable", "telpher_undeliverable_total"),
    ("message bytes", "telpher_message_bytes_total"),
    ("mailbox deliveries", "telpher_mailbox_deliveries_total"),
    ("mailbox acknowledged", "telpher_mailbox_acknowledged_total"),
    ("stream records", "telpher_stream_records_total"),
    (
        "conversation messages",
        "telpher_conversation_messages_total",
    ),
    ("topic records", "telpher_topic_records_total"),
    ("topic bytes", "telpher_topic_bytes_total"),
    ("kafka requests", "telpher_kafka_requests_total"),
    ("kafka errors", "telpher_kafka_errors_total"),
    (
        "http requests",
        "telpher_http_request_duration_seconds_count",
    ),
    ("failures", "telpher_failures_total"),
    ("unauthenticated", "telpher_unauthenticated_total"),
    ("journal syncs", "telpher_journal_syncs_total"),
    ("journal records", "telpher_journal_records_total"),
    ("journal bytes", "telpher_journal_bytes_total"),
];

/// Gauges that are counts.
const GAUGES: &[(&str, &str)] = &[
    ("connections", "telpher_connections"),
    ("subscriptions", "telpher_subscriptions"),
    ("calls in flight", "telpher_pending_calls"),
    ("mailbox messages", "telpher_mailbox_messages"),
    ("dead letters", "telpher_mailbox_dead_letters"),
    ("takes that wait", "telpher_quota_waiting"),
    ("open holds", "telpher_quota_holds"),
    (
        "journal segments to file",
        "telpher_journal_waiting_segments",
    ),
    ("open files", "process_open_fds"),
];

/// Gauges that are sizes.
const SIZES: &[(&str, &str)] = &[
    ("memory", "process_resident_memory_bytes"),
    ("journal queue", "telpher_journal_queued_bytes"),
    ("journal extents", "telpher_journal_extent_bytes"),
];

/// Histograms of durations.
const DURATIONS: &[(&str, &str)] = &[
    ("disk sync", "telpher_journal_sync_seconds"),
    ("http request", "telpher_http_request_duration_seconds"),
];

/// The state of the journal that needs no attention.
const SERVING: &str = "serving";

/// Returns a row for each number.
pub(super) fn node(history: &History) -> Table {
    let metrics = &history.now().metrics;
    let mut table = Table::new(NODE);
    let mut push = |name: &str, value: Cell, rate: Cell, is_warning: bool| {
        let cells = vec![Cell::text(name), value, rate];
        table.push(name, cells, Level::warning_if(is_warning));
    };
    if let Some(state) = journal_state(history) {
        let is_warning = state != SERVING;
        push("journal state", Cell::text(state), Cell::Empty, is_warning);
    }
    if let Some(cpu) = cpu_percent(history) {
        push("cpu percent", Cell::Number(cpu), Cell::Empty, false);
    }
    for (name, metric) in GAUGES {
        if let Some(value) = metrics.sum(metric) {
            push(name, Cell::Count(value as u64), Cell::Empty, false);
        }
    }
    for (name, metric) in SIZES {
        if let Some(value) = metrics.sum(metric) {
            push(name, Cell::Bytes(value as u64), Cell::Empty, false);
        }
    }
    for (name, metric) in DURATIONS {
        for (suffix, share) in [("p50", 0.5), ("p99", 0.99)] {
            if let Some(millis) = quantile_ms(history, metric, share) {
                let name = format!("{name} {suffix}");
                push(&name, Cell::Millis(millis), Cell::Empty, false);
            }
        }
    }
    for (name, metric) in COUNTERS {
        if let Some(value) = metrics.sum(metric) {
            let rate = Cell::number(history.metric_rate(metric));
            push(name, Cell::Count(value as u64), rate, false);
        }
    }
    push_labelled(history, &mut push);
    table
}

/// Adds a row for each outcome of takes, and for each error code that was answered.
fn push_labelled(history: &History, push: &mut impl FnMut(&str, Cell, Cell, bool)) {
    for (title, metric, label) in [
        ("takes", "telpher_quota_takes_total", "outcome"),
        ("failures", "telpher_failures_total", "code"),
    ] {
        for series in history.now().metrics.all(metric) {
            let value = series.label(label);
            let before = history.before().map(|before| {
                let found = before.metrics.labelled(metric, label, value);
                found.unwrap_or(0.0)
            });
            // Codes that never occurred say nothing.
            if series.value > 0.0 || metric != "telpher_failures_total" {
                let rate = Cell::number(history.rate(before, Some(series.value)));
                let name = format!("{title} {value}");
                push(&name, Cell::Count(series.value as u64), rate, false);
            }
        }
    }
}

/// Returns the state of the journal; `None` for a node without one.
fn journal_state(history: &History) -> Option<&str> {
    let states = history.now().metrics.all("telpher_journal_state");
    let current = states.iter().find(|it| it.value > 0.0)?;
    Some(current.label("state"))
}

/// Returns the share of one CPU that the process used between the samples, in percent.
fn cpu_percent(history: &History) -> Option<f64> {
    let seconds = history.metric_rate("process_cpu_seconds_total")?;
    Some(seconds * 100.0)
}

/// Returns the upper bound of a quantile of durations between the samples, in milliseconds.
fn quantile_ms(history: &History, metric: &str, share: f64) -> Option<f64> {
    let before = history.before();
    let before = before.map_or(Vec::new(), |it| it.metrics.buckets(metric));
    let seconds = quantile(&before, &history.now().metrics.buckets(metric), share)?;
    Some(seconds * 1e3)
}

/// Returns the problem of the node, if it has one: the state of a journal that does not serve.
pub(crate) fn problem(history: &History) -> Option<String> {
    let state = journal_state(history).filter(|state| *state != SERVING)?;
    let problems = history.now().metrics.all("telpher_journal_problem");
    let reason = problems.first().map_or("", |it| it.label("reason"));
    Some(format!("journal {state}: {reason}"))
}

/// Returns the most important numbers on one line.
pub(crate) fn summary(history: &History) -> String {
    let rate = |metric| Cell::number(history.metric_rate(metric)).show();
    let sum = |metric| history.now().metrics.sum(metric);
    let takes = "telpher_quota_takes_total";
    let denied = |sample: Option<&crate::sample::Sample>| {
        let metrics = &sample?.metrics;
        metrics.labelled(takes, "outcome", "denied")
    };
    let denied = history.rate(denied(history.before()), denied(Some(history.now())));
    let memory =
        sum("process_resident_memory_bytes").map_or(Cell::Empty, |it| Cell::Bytes(it as u64));
    let sync = quantile_ms(history, "telpher_journal_sync_seconds", 0.99);
    let parts = [
        ("requests/s", rate("telpher_requests_total")),
        ("sends/s", rate("telpher_sends_total")),
        ("writes/s", rate("telpher_writes_total")),
        ("appends/s", rate("telpher_topic_records_total")),
        ("takes/s", rate(takes)),
        ("denied/s", Cell::number(denied).show()),
        ("cpu %", Cell::number(cpu_percent(history)).show()),
        ("memory", memory.show()),
        ("sync p99", sync.map_or(Cell::Empty, Cell::Millis).show()),
    ];
    let parts = parts.map(|(name, value)| format!("{name} {value}"));
    parts.join("  ")
}

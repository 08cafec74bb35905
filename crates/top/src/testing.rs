//! A node that was sampled twice, two seconds apart.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::metrics::Metrics;
use crate::sample::{History, Question, Sample};

/// Returns a history of two samples. Between them a worker received 20 messages, `orders` got 10
/// records, and 6 takes were denied.
pub(crate) fn history() -> History {
    let mut history = History::default();
    history.add(sample(1_000, 0));
    history.add(sample(3_000, 1));
    history
}

/// Returns a sample; `later` is 0 for the first and 1 for the second one.
pub(crate) fn sample(at_ms: u64, later: u64) -> Sample {
    let instance = |name: &str, connection: u64, delivered: u64| {
        json!({
            "instance": name, "connection": connection, "remote": "127.0.0.1:5000",
            "delivered": delivered, "dropped": 0, "version": "1.2",
        })
    };
    let agent = |name: &str, undeliverable: u64, instances: Vec<Value>| {
        json!({
            "name": name, "protocol": "native", "undeliverable": undeliverable,
            "instances": instances,
        })
    };
    let workers = vec![
        instance("w-1", 4, 100 + 15 * later),
        instance("w-2", 5, 50 + 5 * later),
    ];
    let agents = json!({ "agents": [
        agent("acme/demo/worker", 0, workers),
        agent("acme/demo/gone", 3, vec![]),
        agent("telpher/system/node", 0, vec![instance("-", 1, 9)]),
    ]});
    let connections = json!({ "connections": [
        { "id": 4, "pending_calls": 2 }, { "id": 5, "pending_calls": 1 },
    ]});
    let backlog = json!({ "omitted": 0, "mailboxes": [
        { "name": "acme/demo/idle", "messages": 7 + 2 * later, "dead": 1, "oldest_age_ms": 61_000 },
        { "name": "acme/demo/worker", "messages": 4, "dead": 0, "oldest_age_ms": 250 },
    ]});
    let topics = json!({ "omitted": 5, "topics": [
        { "name": "orders", "partitions": 2, "records": 30 + 10 * later, "end": 90 + 10 * later,
          "bytes": 4_096 },
        { "name": "quiet", "partitions": 1, "records": 0, "end": 0, "bytes": 0 },
    ]});
    let groups = json!({ "omitted": 0, "groups": [
        { "group": "billing", "state": "Empty", "lag": 12 + 8 * later, "partitions": [
            { "topic": "orders", "partition": 0, "lag": 12 + 8 * later },
            { "topic": "orders", "partition": 1, "lag": 0 },
        ]},
    ]});
    let denied =
        json!({ "rows": [{ "name": "acme/demo/worker", "limit": null, "count": 6 * later }] });
    let taken = json!({ "rows": [{ "name": "acme", "limit": "spend", "count": 900 }] });
    let messages = json!({ "messages": [{
        "offset": 7, "sender": "acme/demo/ann", "state": "waiting", "deliveries": 0,
        "written_ms": 1_700_000_000_000_u64, "method": "", "body": "job\n\u{1b}[2J7",
    }]});
    let state = json!({ "state": [
        { "partition": 0, "start": 60, "end": 80 + 10 * later, "size": 4_000 },
        { "partition": 1, "start": 0, "end": 10, "size": 96 },
    ]});
    let limits = json!({ "limits": [
        { "name": "calls", "unit": "requests", "remaining": 0, "capacity": 100, "reset_ms": 5_000 },
        { "name": "spend", "unit": "usd_micros", "remaining": -3, "capacity": 1_000,
          "reset_ms": null },
    ]});
    let member = |id: u64, is_in_sync: bool, behind: u64| {
        json!({
            "id": id, "name": format!("node-{id}"), "role": "voter", "shards_led": 0,
            "in_sync": is_in_sync, "behind_blocks": behind, "clock_ahead_ms": 1.5,
            "kept_out": null, "link": "127.0.0.1:7402",
        })
    };
    let cluster = json!({
        "leader": 1, "nodes": [member(1, true, 0), member(2, false, 40 + 20 * later)],
    });
    let worker = "acme/demo/worker".to_owned();
    let answers = [
        (Question::Agents, agents),
        (Question::Connections, connections),
        (Question::Backlog, backlog),
        (Question::Topics, topics),
        (Question::Groups, groups),
        (Question::Denied, denied),
        (Question::Taken, taken),
        (Question::Cluster, cluster),
        (Question::Messages(worker.clone()), messages),
        (Question::Topic("orders".to_owned()), state),
        (Question::Subject(worker), limits),
    ];
    Sample {
        at_ms,
        unix_s: 1_700_000_000 + at_ms / 1_000,
        metrics: Metrics::parse(&page(later)),
        answers: BTreeMap::from_iter(answers.map(|(question, answer)| (question, Ok(answer)))),
    }
}

fn page(later: u64) -> String {
    format!(
        "process_cpu_seconds_total {}\n\
         process_resident_memory_bytes 35651584\n\
         telpher_requests_total {}\n\
         telpher_sends_total 5\n\
         telpher_failures_total{{code=\"busy\"}} {}\n\
         telpher_failures_total{{code=\"internal\"}} 0\n\
         telpher_quota_takes_total{{outcome=\"admitted\"}} {}\n\
         telpher_quota_takes_total{{outcome=\"denied\"}} {}\n\
         telpher_quota_admitted_total{{limit=\"calls\"}} {}\n\
         telpher_quota_denied_total{{limit=\"calls\"}} {}\n\
         telpher_journal_state{{state=\"serving\"}} 1\n\
         telpher_journal_state{{state=\"failed\"}} 0\n\
         telpher_journal_sync_seconds_bucket{{le=\"0.001\"}} {}\n\
         telpher_journal_sync_seconds_bucket{{le=\"+Inf\"}} {}\n",
        10.0 + 0.5 * later as f64,
        1_000 + 24 * later,
        2 * later,
        100 + 8 * later,
        6 * later,
        100 + 8 * later,
        6 * later,
        40 + 4 * later,
        40 + 4 * later,
    )
}

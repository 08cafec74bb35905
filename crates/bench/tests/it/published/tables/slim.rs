//! Messages over the SLIM protocol.

use bench::model::Metric;
use serde_json::Value;

use crate::published::table::{
    ALL_CPU, CPU, MEAN, P50, P99, RATE, Table, number, pair, report, text, two_figures,
};

pub(super) fn nodes() -> Table {
    let one = "request-reply";
    let rows = [
        ("request-reply, rate", one, "-f1", RATE),
        ("request-reply, p50", one, "-f1", P50),
        ("request-reply, p99", one, "-f1", P99),
        ("request-reply, node CPU per message", one, "-f1", CPU),
        ("fire-and-forget, rate", "fire-and-forget", "", RATE),
        (
            "fire-and-forget, node CPU per message",
            "fire-and-forget",
            "",
            CPU,
        ),
    ];
    let row = |(words, mode, depth, metric): (&str, &str, &str, Metric)| {
        let cells = [16, 1_024, 16_384].map(|size| {
            let key = |target: &str| {
                let shape = format!("c1-s{size}-r0{depth}");
                format!("{target}-agent-{mode}-{shape}-applications=slimctl-protocol=slim")
            };
            pair("slim-nodes", key("telpher"), key("slim"), metric)
        });
        [text(words)].into_iter().chain(cells).collect()
    };
    Table {
        name: "slim-nodes",
        head: &["load", "16 B", "1 KiB", "16 KiB"],
        labels: 1,
        rows: rows.into_iter().map(row).collect(),
    }
}

pub(super) fn reliable() -> Table {
    let sessions = [("reliable", "python-reliable"), ("unreliable", "python")];
    let metrics = [("rate", RATE), ("p50", P50), ("node CPU per message", CPU)];
    let row = |session: &str, applications: &str, words: &str, metric: Metric| {
        let cells = [16, 16_384].map(|size| {
            let key = |target: &str| {
                let shape = format!("c1-s{size}-r0-f1");
                format!(
                    "{target}-agent-request-reply-{shape}-applications={applications}-protocol=slim"
                )
            };
            pair("slim-reliable", key("telpher"), key("slim"), metric)
        });
        let words = text(format!("{session} session, {words}"));
        [words].into_iter().chain(cells).collect()
    };
    let mut rows = Vec::new();
    for (session, applications) in sessions {
        rows.extend(metrics.map(|(words, metric)| row(session, applications, words, metric)));
    }
    Table {
        name: "slim-reliable",
        head: &["load", "16 B", "16 KiB"],
        labels: 1,
        rows,
    }
}

pub(super) fn subscriptions() -> Table {
    let report = report("slim-subscriptions");
    let servers = report.as_array().unwrap();
    let row = |connections: u64| {
        let bytes = |target: &str| {
            let of = |one: &&Value| {
                one["target"] == target && one["connections"].as_u64() == Some(connections)
            };
            let server = servers.iter().find(of).unwrap();
            let size = number(server, "bytes_per_subscription") / 1e3;
            text(format!("{} KB", two_figures(size)))
        };
        let words = format!("10,000 subscriptions over {connections} connections");
        vec![text(words), bytes("telpher"), bytes("slim")]
    };
    Table {
        name: "slim-subscriptions",
        head: &["memory of each subscription", "Telpher", "SLIM's node"],
        labels: 1,
        rows: vec![row(100), row(1_000)],
    }
}

pub(super) fn paced() -> Table {
    let row = |words: &str, ours: &str, theirs: &str| {
        let key = |target: &str, applications: &str| {
            format!("{target}-agent-request-reply-c1-s16-r100-applications={applications}")
        };
        let cell = |metric| {
            let subject = key("telpher", ours);
            pair("slim-paced", subject, key("slim", theirs), metric)
        };
        vec![text(words), cell(MEAN), cell(ALL_CPU)]
    };
    let python = "python-protocol=slim";
    Table {
        name: "slim-paced",
        head: &[
            "compared with Python applications on SLIM's node",
            "mean latency",
            "CPU of all processes",
        ],
        labels: 1,
        rows: vec![
            row("the same applications on Telpher", python, python),
            row(
                "agents with the native protocol",
                "native-protocol=native",
                python,
            ),
        ],
    }
}

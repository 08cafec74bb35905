//! Durable appends: records and messages in conversations.

use bench::model::Metric;

use crate::published::table::{CPU, P50, RATE, Table, pair, text};

pub(super) fn streams() -> Table {
    let filings = ["off", "on"];
    let local = filings.map(|filing| {
        let key = |target: &str| {
            let case = "journal-append-c128-s256-r0-f1";
            format!("{target}-{case}-filing={filing}-streams=1000-threads=128-via=process")
        };
        pair("journal-local", key("telpher"), key("disk-floor"), RATE)
    });
    let words = "in process, 128 waiting writers, rate";
    let labels = [text(words), text("`disk-floor`")];
    let mut rows = vec![labels.into_iter().chain(local).collect()];
    let mut door = |words: &str, shape: &str, floor: &str, metric: Metric| {
        let cells = filings.map(|filing| {
            let key = |target: &str| {
                format!("{target}-journal-append-{shape}-filing={filing}-streams=1000-via=door")
            };
            pair("journal-door", key("telpher"), key(floor), metric)
        });
        let labels = [text(words), text(format!("`{floor}`"))];
        rows.push(labels.into_iter().chain(cells).collect());
    };
    for (words, shape) in [
        ("1 connection × 128 in flight", "c1-s256-r0-f128"),
        ("16 connections × 8 in flight", "c16-s256-r0-f8"),
        ("128 connections × 1 in flight", "c128-s256-r0-f1"),
    ] {
        for floor in ["durable-echo", "durable-echo-1"] {
            door(
                &format!("through a node, {words}, rate"),
                shape,
                floor,
                RATE,
            );
        }
    }
    let one = "through a node, one at a time, p50";
    door(one, "c1-s256-r0-f1", "durable-echo", P50);
    Table {
        name: "streams",
        head: &[
            "load",
            "compared with",
            "without filing",
            "while everything is filed and merged",
        ],
        labels: 2,
        rows,
    }
}

const APIS: [&str; 3] = ["native", "ws", "http"];

pub(super) fn store() -> Table {
    let shape = "store-append-c30-s256-r0-f5";
    let rivals = [
        ("PostgreSQL, `INSERT` by 150 clients", "postgres"),
        ("durable-streams, over HTTP", "durable-streams"),
        ("Redis, `appendfsync always`", "redis"),
        (
            "a server that only appends and syncs (`durable-echo`)",
            "durable-echo",
        ),
    ];
    let row = |words: String, rival: &str, metric: Metric| {
        let cells = APIS.map(|api| {
            let subject = format!("telpher-{shape}-door={api}");
            pair("store", subject, format!("{rival}-{shape}"), metric)
        });
        [text(words)].into_iter().chain(cells).collect()
    };
    let rates = rivals.map(|(words, rival)| row(format!("{words}, rate"), rival, RATE));
    let cpus = rivals[..3].iter().map(|(words, rival)| {
        let name = words.split(',').next().unwrap_or(words);
        row(format!("{name}, server CPU per message"), rival, CPU)
    });
    Table {
        name: "store",
        head: &["compared with", "native", "WebSocket", "HTTP"],
        labels: 1,
        rows: rates.into_iter().chain(cpus).collect(),
    }
}

pub(super) fn store_one() -> Table {
    let shape = "store-append-c1-s256-r0-f1";
    let rivals = [
        ("a raw sync (`disk-floor`)", "disk-floor", "-threads=1"),
        (
            "a server that only appends and syncs (`durable-echo`)",
            "durable-echo",
            "",
        ),
        ("PostgreSQL", "postgres", ""),
        ("Redis", "redis", ""),
    ];
    let row = |(words, rival, suffix): (&str, &str, &str)| {
        let cells = APIS.map(|api| {
            let subject = format!("telpher-{shape}-door={api}");
            pair(
                "store-one",
                subject,
                format!("{rival}-{shape}{suffix}"),
                P50,
            )
        });
        [text(words)].into_iter().chain(cells).collect()
    };
    Table {
        name: "store-one",
        head: &["p50 compared with", "native", "WebSocket", "HTTP"],
        labels: 1,
        rows: rivals.into_iter().map(row).collect(),
    }
}

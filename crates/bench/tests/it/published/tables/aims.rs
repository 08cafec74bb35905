//! The aims of the figures, and how far each is reached.

use bench::model::Metric;

use crate::published::table::{CPU, Cell, P99, RATE, Table, pair, text};

/// A figure with an aim.
struct Aim {
    load: &'static str,
    rival: &'static str,
    figures: Vec<(&'static str, &'static str, Cell)>,
}

pub(super) fn aims() -> Table {
    let all = [
        bulk(),
        consume(),
        native(),
        native_floor(),
        http(),
        connections("durable-echo", "`durable-echo`"),
        connections("durable-echo-1", "`durable-echo-1`"),
        callbacks(),
        slim(),
        fan_out(),
    ];
    let rows = all.into_iter().flat_map(|aim| {
        let Aim {
            load,
            rival,
            figures,
        } = aim;
        figures.into_iter().map(move |(what, wanted, found)| {
            vec![
                text(format!("{load}, {what}")),
                text(rival),
                text(wanted),
                found,
            ]
        })
    });
    Table {
        name: "aims",
        head: &["load", "compared with", "aim", "measured"],
        labels: 3,
        rows: rows.collect(),
    }
}

/// A cell of a load of `kafka-bulk`, on disk, compared with Kafka's defaults.
fn kafka(load: &str, metric: Metric) -> Cell {
    let subject = format!("telpher-kafka-{load}-durability=disk");
    pair("kafka-bulk", subject, format!("kafka-kafka-{load}"), metric)
}

fn bulk() -> Aim {
    let load = "bulk-c8-s1024-r0-f512-acks=all";
    Aim {
        load: "producing in bulk, on disk",
        rival: "Apache Kafka's defaults (no sync)",
        figures: vec![
            ("rate", "≥ 1.2 ×", kafka(load, RATE)),
            ("broker CPU", "≤ 0.5 ×", kafka(load, CPU)),
            ("p99", "≤ 1 ×", kafka(load, P99)),
        ],
    }
}

fn consume() -> Aim {
    let load = "consume-c1-s1024-r0-f1";
    Aim {
        load: "consuming in bulk",
        rival: "Apache Kafka",
        figures: vec![
            ("rate", "≥ 1 ×", kafka(load, RATE)),
            ("broker CPU", "≤ 1 ×", kafka(load, CPU)),
        ],
    }
}

fn store(api: &str, rival: &str, metric: Metric) -> Cell {
    let load = "store-append-c30-s256-r0-f5";
    let subject = format!("telpher-{load}-door={api}");
    pair("store", subject, format!("{rival}-{load}"), metric)
}

fn native() -> Aim {
    Aim {
        load: "conversations, native",
        rival: "Redis, `appendfsync always`",
        figures: vec![
            ("rate", "≥ 1.3 ×", store("native", "redis", RATE)),
            ("server CPU", "≤ 1.3 ×", store("native", "redis", CPU)),
        ],
    }
}

fn native_floor() -> Aim {
    Aim {
        load: "conversations, native",
        rival: "`durable-echo`",
        figures: vec![("rate", "≥ 0.45 ×", store("native", "durable-echo", RATE))],
    }
}

fn http() -> Aim {
    Aim {
        load: "conversations, HTTP",
        rival: "durable-streams",
        figures: vec![
            ("rate", "≥ 1.3 ×", store("http", "durable-streams", RATE)),
            ("server CPU", "≤ 1 ×", store("http", "durable-streams", CPU)),
        ],
    }
}

fn connections(floor: &str, rival: &'static str) -> Aim {
    let subject = "telpher-kafka-connections-c128-s256-r0-f1-acks=all-durability=disk";
    let floor = format!("{floor}-kafka-append-c128-s256-r0-f1");
    Aim {
        load: "producing over 128 connections, one in flight on each",
        rival,
        figures: vec![("rate", "≥ 0.7 ×", pair("kafka-acks", subject, floor, RATE))],
    }
}

fn callbacks() -> Aim {
    let cell = |depth: u32| {
        let key = |target: &str| {
            format!(
                "{target}-rpc-callback-c1-s128-r0-f{depth}-placement=same-cpu-transport=tcp-via=direct"
            )
        };
        pair("rpc-same-cpu", key("telpher"), key("floor"), RATE)
    };
    Aim {
        load: "callbacks on one CPU",
        rival: "TCP echo",
        figures: vec![
            ("10 in flight, rate", "≥ 0.8 ×", cell(10)),
            ("64 in flight, rate", "≥ 0.6 ×", cell(64)),
            ("256 in flight, rate", "≥ 0.5 ×", cell(256)),
        ],
    }
}

fn slim() -> Aim {
    let key = |target: &str| {
        format!("{target}-agent-request-reply-c1-s16-r0-f1-applications=raw-protocol=slim")
    };
    let found = pair("slim-raw", key("telpher"), key("slim"), CPU);
    Aim {
        load: "SLIM protocol, requests of 16 B without sessions",
        rival: "SLIM's node",
        figures: vec![("node CPU", "≤ 0.45 ×", found)],
    }
}

fn fan_out() -> Aim {
    let key = |target: &str| format!("{target}-agent-publish-c1-s16-r0-subscribers=10");
    let found = pair("node-messages", key("telpher"), key("nats"), RATE);
    Aim {
        load: "publish to 10 subscribers",
        rival: "NATS",
        figures: vec![("rate", "≥ 3 ×", found)],
    }
}

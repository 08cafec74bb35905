//! Topics over the Kafka protocol.

use crate::published::table::{CPU, P50, RATE, Table, number, pair, report, text, two_figures};

pub(super) fn acks() -> Table {
    let shapes = [
        ("produce-c1-s256-r0-f128", "append-c1-s256-r0-f128"),
        ("connections-c128-s256-r0-f1", "append-c128-s256-r0-f1"),
    ];
    let row = |words: &str, durability: &str, rival: &str| {
        let cells = shapes.map(|(produce, append)| {
            let subject = format!("telpher-kafka-{produce}-acks=all-durability={durability}");
            let baseline = match rival.starts_with("kafka") {
                true => format!("{rival}-kafka-{produce}-acks=all"),
                false => format!("{rival}-kafka-{append}"),
            };
            pair("kafka-acks", subject, baseline, RATE)
        });
        [text(words)].into_iter().chain(cells).collect()
    };
    let memory = "Apache Kafka's defaults (no sync); Telpher with `telpher.durability=memory`";
    let floor = "a server that only appends and syncs (`durable-echo-1`); Telpher on disk";
    Table {
        name: "kafka-acks",
        head: &[
            "compared with",
            "128 in flight on one connection",
            "one on each of 128 connections",
        ],
        labels: 1,
        rows: vec![
            row(
                "Apache Kafka with `flush.messages=1`; Telpher on disk",
                "disk",
                "kafka-flush",
            ),
            row(
                "Apache Kafka's defaults (no sync); Telpher on disk",
                "disk",
                "kafka",
            ),
            row(memory, "memory", "kafka"),
            row(floor, "disk", "durable-echo-1"),
        ],
    }
}

pub(super) fn bulk() -> Table {
    let row = |words: &str, ours: &str, theirs: &str| {
        let cell = |metric| {
            let subject = format!("telpher-kafka-{ours}");
            pair("kafka-bulk", subject, theirs, metric)
        };
        vec![text(words), cell(RATE), cell(CPU)]
    };
    let bulk = "bulk-c8-s1024-r0-f512-acks=all";
    let on_disk = format!("{bulk}-durability=disk");
    Table {
        name: "kafka-bulk",
        head: &["compared with", "rate", "broker CPU per message"],
        labels: 1,
        rows: vec![
            row(
                "Apache Kafka with `flush.messages=1`",
                &on_disk,
                &format!("kafka-flush-kafka-{bulk}"),
            ),
            row(
                "Apache Kafka's defaults (no sync)",
                &on_disk,
                &format!("kafka-kafka-{bulk}"),
            ),
            row(
                "consuming, Apache Kafka",
                "consume-c1-s1024-r0-f1-durability=disk",
                "kafka-kafka-consume-c1-s1024-r0-f1",
            ),
        ],
    }
}

pub(super) fn end_to_end() -> Table {
    let load = "kafka-end-to-end-c1-s256-r0-f1-acks=all";
    let row = |words: &str, durability: &str, baseline: &str| {
        let subject = format!("telpher-{load}-durability={durability}");
        vec![
            text(words),
            pair("kafka-end-to-end", subject, baseline, P50),
        ]
    };
    let kafka = format!("kafka-{load}");
    Table {
        name: "kafka-end-to-end",
        head: &["compared with", "p50"],
        labels: 1,
        rows: vec![
            row(
                "Apache Kafka with `flush.messages=1`; Telpher on disk",
                "disk",
                &format!("kafka-flush-{load}"),
            ),
            row(
                "Apache Kafka's defaults (no sync); Telpher on disk",
                "disk",
                &kafka,
            ),
            row(
                "Apache Kafka's defaults (no sync); Telpher with `telpher.durability=memory`",
                "memory",
                &kafka,
            ),
            row(
                "a raw sync; Telpher on disk",
                "disk",
                "disk-floor-kafka-append-c1-s256-r0-f1-threads=1",
            ),
            row(
                "a raw round trip; Telpher on disk",
                "disk",
                "floor-kafka-append-c1-s256-r0-f1",
            ),
        ],
    }
}

pub(super) fn cluster() -> Table {
    let shapes = [
        ("produce-c1-s256-r0-f128", "append-c1-s256-r0-f128"),
        ("produce-c1-s256-r0-f1024", "append-c1-s256-r0-f1024"),
        ("connections-c128-s256-r0-f1", "append-c128-s256-r0-f1"),
        ("connections-c1024-s256-r0-f1", "append-c1024-s256-r0-f1"),
    ];
    let row = |words: &str, acks: &str, rival: &str, metric| {
        let cells = shapes.map(|(produce, append)| {
            let subject = format!("telpher-cluster-kafka-{produce}-acks={acks}-nodes=3");
            let baseline = match rival {
                "quorum-floor" => format!("{rival}-kafka-{append}"),
                "telpher" => format!("telpher-kafka-{produce}-acks={acks}-durability=disk-nodes=1"),
                _ => format!("{rival}-kafka-{produce}-acks={acks}-nodes=3"),
            };
            pair("kafka-cluster", subject, baseline, metric)
        });
        [text(words)].into_iter().chain(cells).collect()
    };
    Table {
        name: "kafka-cluster",
        head: &[
            "compared with",
            "128 in flight on one connection",
            "1,024 in flight on one connection",
            "one on each of 128 connections",
            "one on each of 1,024 connections",
        ],
        labels: 1,
        rows: vec![
            row(
                "the quorum floor, `acks=all`, rate",
                "all",
                "quorum-floor",
                RATE,
            ),
            row("one Telpher node, `acks=all`, rate", "all", "telpher", RATE),
            row(
                "Apache Kafka, `flush.messages=1`, `acks=all`, rate",
                "all",
                "kafka-cluster-flush",
                RATE,
            ),
            row(
                "Apache Kafka's defaults (no sync), `acks=all`, rate",
                "all",
                "kafka-cluster",
                RATE,
            ),
            row(
                "Apache Kafka's defaults (no sync), `acks=1`, rate",
                "1",
                "kafka-cluster",
                RATE,
            ),
            row("one Telpher node, `acks=all`, CPU", "all", "telpher", CPU),
            row(
                "Apache Kafka, `flush.messages=1`, `acks=all`, CPU",
                "all",
                "kafka-cluster-flush",
                CPU,
            ),
            row(
                "Apache Kafka's defaults (no sync), `acks=all`, CPU",
                "all",
                "kafka-cluster",
                CPU,
            ),
        ],
    }
}

pub(super) fn faults() -> Table {
    let reports = ["kafka-failover", "kafka-faults"].map(report);
    let words = |fault: &str| match fault {
        "none" => "none, for comparison",
        "kill-leader" => "`kill -9` of the leader",
        "kill-follower" => "`kill -9` of a follower",
        "kill-all" => "`kill -9` of all three, started again",
        "pause" => "the leader stands still for 2 s",
        "pause-all" => "all three stand still for 2 s",
        other => panic!("a fault without words: {other}"),
    };
    let faults = reports
        .iter()
        .flat_map(|it| it["faults"].as_array().unwrap());
    let rows = faults.map(|it| {
        let ms = |value: &serde_json::Value, field: &str| format!("{:.0}", number(value, field));
        vec![
            text(words(it["fault"].as_str().unwrap())),
            text(it["count"].to_string()),
            text(ms(&it["first_ack_ms"], "p50")),
            text(ms(&it["first_ack_ms"], "p99")),
            text(ms(&it["longest_gap_ms"], "max")),
            text(it["epochs_max"].to_string()),
        ]
    });
    Table {
        name: "kafka-faults",
        head: &[
            "fault",
            "times",
            "ms to the first ack, p50",
            "p99",
            "longest ms without an ack",
            "changes of leader, at most",
        ],
        labels: 1,
        rows: rows.collect(),
    }
}

pub(super) fn idle() -> Table {
    let (idle, start) = (report("kafka-idle"), report("kafka-start"));
    let cpu = number(&idle, "idle_cpu_ms") / 10.0 / number(&idle, "idle_seconds");
    let memory = number(&idle, "idle_rss_bytes") / 1e6;
    let ready_s = number(&start, "start_ms") / 1e3;
    let log_gib = number(&start, "log_bytes") / f64::from(1 << 30);
    let row = |words: String, figure: String| vec![text(words), text(figure)];
    Table {
        name: "kafka-idle",
        head: &["state", "figure"],
        labels: 1,
        rows: vec![
            row("idle, memory".to_owned(), format!("{memory:.0} MB")),
            row("idle, CPU".to_owned(), format!("{} %", two_figures(cpu))),
            row(
                format!("start after `kill -9` with a log of {log_gib:.0} GiB, until it serves"),
                format!("{} s", two_figures(ready_s)),
            ),
        ],
    }
}

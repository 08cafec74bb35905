//! The tables of `docs/benchmarks.md` and of the README, made from the committed results in
//! `bench/results`.
//!
//! A table stands between `<!-- figures: NAME -->` and `<!-- end of figures -->`. The test fails if
//! one is not what the results say; with `UPDATE_FIGURES=1` it writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bench::model::{CaseComparison, Metric, Results};
use serde_json::Value;

const RATE: Metric = Metric::ObservedRate;
const MEAN: Metric = Metric::LatencyMean;
const P50: Metric = Metric::LatencyP50;
const P99: Metric = Metric::LatencyP99;
const CPU: Metric = Metric::NodeCpuPerMessage;
const ALL_CPU: Metric = Metric::TotalCpuPerMessage;

#[test]
fn the_tables_of_the_pages_are_those_of_the_results() {
    let mut committed = Committed::default();
    let pages = [
        ("docs/benchmarks.md", tables()),
        ("README.md", vec![overview()]),
    ];
    for (name, tables) in pages {
        let page = root().join(name);
        let text = fs::read_to_string(&page).unwrap();
        let made = fill(&text, &tables, &mut committed);
        if std::env::var_os("UPDATE_FIGURES").is_some() {
            fs::write(&page, &made).unwrap();
            continue;
        }
        let stale = text.lines().zip(made.lines()).find(|(old, new)| old != new);
        assert!(
            text == made,
            "{name} differs from bench/results: {stale:?}\nhint: UPDATE_FIGURES=1 cargo test \
             --package telpher-bench --test it published"
        );
    }
}

/// Replaces the marked tables of a page.
fn fill(page: &str, tables: &[Table], committed: &mut Committed) -> String {
    let mut text = page.to_owned();
    for table in tables {
        let begin = format!("<!-- figures: {} -->\n", table.name);
        let start = text.find(&begin).map(|at| at + begin.len());
        let start = start.unwrap_or_else(|| panic!("no table `{}` in the page", table.name));
        let end = start + text[start..].find("<!-- end of figures -->").unwrap();
        text.replace_range(start..end, &format!("\n{}\n", table.render(committed)));
    }
    let marked = text.matches("<!-- figures: ").count();
    assert_eq!(marked, tables.len(), "a marked table is unknown");
    text
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Committed results by name, read once.
#[derive(Default)]
struct Committed {
    suites: BTreeMap<&'static str, Results>,
}

impl Committed {
    /// Returns the ratio of two cases with its 95 % interval.
    fn ratio(&mut self, cell: &Ratio) -> String {
        let suite = self.suites.entry(cell.suite).or_insert_with(|| {
            let path = root().join(format!("bench/results/{}/results.json.gz", cell.suite));
            Results::from_bytes(&fs::read(path).unwrap()).unwrap()
        });
        let case = |key: &str| {
            let found = suite.case(key);
            found.unwrap_or_else(|| panic!("{} has no case {key}", cell.suite))
        };
        let found = CaseComparison::of(cell.metric, case(&cell.subject), case(&cell.baseline));
        let found = found.unwrap_or_else(|| panic!("{}: no {:?}", cell.subject, cell.metric));
        let interval = match found.comparison.interval {
            Some(interval) => {
                let (low, high) = (two_figures(interval.low), two_figures(interval.high));
                format!("{low} – {high}")
            }
            None => "n/a".to_owned(),
        };
        let ratio = found.comparison.ratio.map(two_figures).unwrap();
        format!("{ratio} × [{interval}]")
    }
}

/// Formats a number with two significant figures, or as an integer from 100.
fn two_figures(value: f64) -> String {
    let decimals = |value: f64| (1 - value.abs().max(1e-9).log10().floor() as i32).max(0) as usize;
    let rounded = format!("{value:.*}", decimals(value));
    // Rounding may add a digit: 9.96 is 10.
    let value: f64 = rounded.parse().unwrap();
    format!("{value:.*}", decimals(value))
}

#[test]
fn two_significant_figures_remain() {
    for (value, expected) in [
        (0.0386, "0.039"),
        (0.996, "1.0"),
        (9.96, "10"),
        (16.4, "16"),
        (196.3, "196"),
    ] {
        assert_eq!(two_figures(value), expected);
    }
}

/// A ratio of two cases of a suite, named by their keys.
struct Ratio {
    suite: &'static str,
    subject: String,
    baseline: String,
    metric: Metric,
}

enum Cell {
    Text(String),
    Ratio(Ratio),
}

struct Table {
    name: &'static str,
    head: &'static [&'static str],
    /// Number of columns with text, which come first.
    labels: usize,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    fn render(&self, committed: &mut Committed) -> String {
        let mut text = format!("| {} |\n|", self.head.join(" | "));
        for column in 0..self.head.len() {
            text += if column < self.labels { "---|" } else { "--:|" };
        }
        text += "\n";
        for row in &self.rows {
            assert_eq!(row.len(), self.head.len());
            text += "|";
            for cell in row {
                let words = match cell {
                    Cell::Text(words) => words.clone(),
                    Cell::Ratio(ratio) => committed.ratio(ratio),
                };
                write!(text, " {words} |").unwrap();
            }
            text += "\n";
        }
        text
    }
}

fn text(words: impl Into<String>) -> Cell {
    Cell::Text(words.into())
}

fn pair(
    suite: &'static str,
    subject: impl Into<String>,
    baseline: impl Into<String>,
    metric: Metric,
) -> Cell {
    Cell::Ratio(Ratio {
        suite,
        subject: subject.into(),
        baseline: baseline.into(),
        metric,
    })
}

fn tables() -> Vec<Table> {
    vec![
        messaging(),
        rpc(),
        streams(),
        store(),
        store_one(),
        quotas(),
        kafka_acks(),
        kafka_bulk(),
        kafka_end_to_end(),
        kafka_idle(),
        slim_nodes(),
        slim_reliable(),
        slim_subscriptions(),
        slim_paced(),
    ]
}

/// The table of the README: one comparison of each part, and some that Telpher loses.
fn overview() -> Table {
    let row = |words: &str, suite: &'static str, subject: &str, baseline: &str| {
        vec![text(words), pair(suite, subject, baseline, RATE)]
    };
    let requests = "agent-request-reply-c1-s16-r0-f64";
    let rpc = |target: &str| {
        format!("{target}-rpc-callback-c1-s128-r0-f64-placement=unpinned-transport=tcp-via=direct")
    };
    let appends = "store-append-c30-s256-r0-f5";
    let takes = "quota-take-c50-s17-r0-f16-agents=10000";
    let produce = "kafka-connections-c128-s256-r0-f1-acks=all";
    let bulk = "kafka-bulk-c8-s1024-r0-f512-acks=all";
    let slim = "agent-request-reply-c1-s1024-r0-f1-applications=slimctl-protocol=slim";
    let reliable = "agent-request-reply-c1-s16-r0-f1-applications=python-reliable-protocol=slim";
    let ours = |shape: &str| format!("telpher-{shape}");
    let theirs = |target: &str, shape: &str| format!("{target}-{shape}");
    let api = format!("telpher-{appends}-door=native");
    Table {
        name: "overview",
        head: &["load, compared with", "ratio of rates"],
        labels: 1,
        rows: vec![
            row(
                "requests through a node, 64 in flight, NATS core",
                "node-messages",
                &ours(requests),
                &theirs("nats", requests),
            ),
            row(
                "direct calls, 64 in flight, tonic",
                "rpc-unpinned",
                &rpc("telpher"),
                &rpc("tonic"),
            ),
            row(
                "direct calls, 64 in flight, a raw TCP echo",
                "rpc-unpinned",
                &rpc("telpher"),
                &rpc("floor"),
            ),
            row(
                "durable messages in conversations, PostgreSQL",
                "store",
                &api,
                &theirs("postgres", appends),
            ),
            row(
                "durable messages in conversations, Redis with `appendfsync always`",
                "store",
                &api,
                &theirs("redis", appends),
            ),
            row(
                "quota takes, 16 in flight, Express with Redis",
                "quota-closed",
                &ours(takes),
                &theirs("express", takes),
            ),
            row(
                "durable Kafka produce, one in flight on each of 128 connections, Apache Kafka with \
                 `flush.messages=1`",
                "kafka-acks",
                &format!("telpher-{produce}-durability=disk"),
                &theirs("kafka-flush", produce),
            ),
            row(
                "Kafka produce in bulk, Telpher durable, Apache Kafka's defaults (no sync)",
                "kafka-bulk",
                &format!("telpher-{bulk}-durability=disk"),
                &theirs("kafka", bulk),
            ),
            row(
                "SLIM request-reply, 1 KiB, SLIM's own node",
                "slim-nodes",
                &ours(slim),
                &theirs("slim", slim),
            ),
            row(
                "SLIM request-reply in reliable sessions, 16 B, SLIM's own node",
                "slim-reliable",
                &ours(reliable),
                &theirs("slim", reliable),
            ),
        ],
    }
}

fn messaging() -> Table {
    let loads = [
        ("requests, 1 in flight", "request-reply-c1-s16-r0-f1"),
        ("requests, 10 in flight", "request-reply-c1-s16-r0-f10"),
        ("requests, 64 in flight", "request-reply-c1-s16-r0-f64"),
        ("publish to 1 subscriber", "publish-c1-s16-r0-subscribers=1"),
        (
            "publish to 10 subscribers",
            "publish-c1-s16-r0-subscribers=10",
        ),
    ];
    let row = |(words, load): (&str, &str)| {
        let cell = |metric| {
            let of = |target: &str| format!("{target}-agent-{load}");
            pair("node-messages", of("telpher"), of("nats"), metric)
        };
        vec![text(words), cell(RATE), cell(CPU)]
    };
    Table {
        name: "messaging",
        head: &["load", "rate", "node CPU per message"],
        labels: 1,
        rows: loads.into_iter().map(row).collect(),
    }
}

fn rpc() -> Table {
    let placements = [
        ("two CPUs", "rpc-two-cpus", "two-cpus", "serial"),
        ("unpinned", "rpc-unpinned", "unpinned", "serial"),
        ("one CPU", "rpc-same-cpu", "same-cpu", "blocking"),
    ];
    let mut rows = Vec::new();
    for (words, suite, placement, one_mode) in placements {
        let key = |target: &str, mode: &str, depth: u32| {
            format!(
                "{target}-rpc-{mode}-c1-s128-r0-f{depth}-placement={placement}-transport=tcp-via=direct"
            )
        };
        let mut row = |words: String, modes: [&str; 2], depth: u32, metric: Metric| {
            let rivals = ["floor", "zmq", "tarpc", "tonic"].into_iter();
            let cells = rivals.map(|rival| {
                let (ours, theirs) = (key("telpher", modes[0], depth), key(rival, modes[1], depth));
                pair(suite, ours, theirs, metric)
            });
            rows.push([text(words)].into_iter().chain(cells).collect());
        };
        let one = format!("{words}: 1 in flight, {one_mode}");
        row(format!("{one}, rate"), [one_mode, "serial"], 1, RATE);
        row(format!("{one}, p50"), [one_mode, "serial"], 1, P50);
        for depth in [10, 64, 256] {
            let load = format!("{words}: {depth} in flight, callbacks, rate");
            row(load, ["callback", "callback"], depth, RATE);
        }
    }
    Table {
        name: "rpc",
        head: &[
            "placement, load",
            "TCP echo (upper bound)",
            "ZeroMQ",
            "tarpc",
            "tonic",
        ],
        labels: 1,
        rows,
    }
}

fn streams() -> Table {
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

fn store() -> Table {
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

fn store_one() -> Table {
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

fn quotas() -> Table {
    let row = |words: &str, suite: &'static str, ours: &str, theirs: &str| {
        let [subject, baseline] = [("telpher", ours), theirs.split_once(' ').unwrap()]
            .map(|(target, shape)| format!("{target}-quota-take-{shape}"));
        vec![
            text(words),
            text(format!("`{suite}`")),
            pair(suite, &*subject, &*baseline, RATE),
            pair(suite, subject, baseline, CPU),
        ]
    };
    let one = "c50-s17-r0-f1-agents=10000";
    let sixteen = "c50-s17-r0-f16-agents=10000";
    let closed =
        |words, ours, rival: &str| row(words, "quota-closed", ours, &format!("{rival} {ours}"));
    Table {
        name: "quotas",
        head: &["compared with", "results", "rate", "server CPU per take"],
        labels: 2,
        rows: vec![
            closed("Express with Redis, one in flight", one, "express"),
            closed("Express with Redis, 16 in flight", sixteen, "express"),
            closed("throttlecrab, one in flight", one, "throttlecrab"),
            closed("throttlecrab, 16 in flight", sixteen, "throttlecrab"),
            row(
                "throttlecrab with 16 in flight; Telpher with arrays of 100",
                "quota-batch",
                "c8-s17-r0-f1-agents=10000-batch=100",
                "throttlecrab c8-s17-r0-f16-agents=10000",
            ),
            row(
                "a Redis script per take; Telpher leasing from that Redis, one agent, arrays of 100",
                "quota-redis",
                "c48-s17-r0-f1-agents=1-batch=100-capacity=10000000-nodes=1",
                "redis-script c48-s17-r0-f16-agents=1-capacity=10000000",
            ),
        ],
    }
}

fn kafka_acks() -> Table {
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

fn kafka_bulk() -> Table {
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

fn kafka_end_to_end() -> Table {
    let row = |words: &str, baseline: &str| {
        let subject = "telpher-kafka-end-to-end-c1-s256-r0-f1-acks=all-durability=disk";
        vec![
            text(words),
            pair("kafka-end-to-end", subject, baseline, P50),
        ]
    };
    Table {
        name: "kafka-end-to-end",
        head: &["compared with", "p50"],
        labels: 1,
        rows: vec![
            row(
                "Apache Kafka with `flush.messages=1`",
                "kafka-flush-kafka-end-to-end-c1-s256-r0-f1-acks=all",
            ),
            row(
                "Apache Kafka's defaults (no sync)",
                "kafka-kafka-end-to-end-c1-s256-r0-f1-acks=all",
            ),
            row(
                "a raw sync",
                "disk-floor-kafka-append-c1-s256-r0-f1-threads=1",
            ),
            row("a raw round trip", "floor-kafka-append-c1-s256-r0-f1"),
        ],
    }
}

/// Reads the JSON report of a check.
fn report(name: &str) -> Value {
    let path = root().join(format!("bench/results/{name}/results.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn number(report: &Value, field: &str) -> f64 {
    let value = report[field].as_f64();
    value.unwrap_or_else(|| panic!("no number `{field}` in {report}"))
}

fn kafka_idle() -> Table {
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

fn slim_nodes() -> Table {
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

fn slim_reliable() -> Table {
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

fn slim_subscriptions() -> Table {
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

fn slim_paced() -> Table {
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

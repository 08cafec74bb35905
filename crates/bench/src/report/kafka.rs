//! Topics in the form of Chronik's report: throughput, bandwidth and latencies for each ack; and what that
//! report lacks: intervals, the broker's work for each message, what was read back, and ratios.

use serde::Serialize;

use super::Table;
use crate::format::{bytes, figures, human, thousands};
use crate::histogram::Histogram;
use crate::measurement::{Measurement, Streamed, Verified};
use crate::model::{Area, CaseResult, Metric, Results, Run};
use crate::workload::kafka::PRODUCE;

/// What Chronik published of 128 producers with 256 bytes each, standalone (`BASELINE_PERFORMANCE.md`,
/// 2025-11-28): acks, rate, bandwidth, p50, p99, p99.9. The first row's own count over its 30 seconds is
/// 361,192 a second: its clock ran on for five.
const PUBLISHED: [[&str; 6]; 2] = [
    [
        "1",
        "309,590 msg/s",
        "75.58 MB/s",
        "0.33 ms",
        "0.59 ms",
        "4.37 ms",
    ],
    [
        "all",
        "347,585 msg/s",
        "84.86 MB/s",
        "0.34 ms",
        "0.56 ms",
        "0.88 ms",
    ],
];

/// Chronik's megabyte.
const MB: f64 = (1 << 20) as f64;

/// The report.
#[must_use]
pub fn chronik(results: &Results) -> String {
    let current = current(results);
    if current.is_empty() {
        return "No topics were measured.\n".to_owned();
    }
    let mut text = format!("# Benchmark Results\n\n{current}\n## Methodology\n\n");
    for (name, words) in &results.setup.notes {
        text += &format!("- {name}: {words}\n");
    }
    text
}

/// Its tables alone; nothing where no topics were measured.
pub(super) fn current(results: &Results) -> String {
    let cases: Vec<&CaseResult> = results
        .cases
        .iter()
        .filter(|one| one.case.area == Area::Kafka)
        .collect();
    if cases.is_empty() {
        return String::new();
    }
    let tables = [
        ("Summary Table", summary(&cases)),
        ("Latency Distribution", latencies(&cases)),
        ("Work For Each Message", work(&cases)),
        ("Read Back", read_back(&cases)),
        ("Ratios", ratios(results, &cases)),
    ];
    let mut sections = Vec::new();
    for (heading, table) in tables {
        if !table.is_empty() {
            let table = table.without_empty_columns();
            sections.push(format!("## {heading}\n\n{}", table.markdown()));
        }
    }
    sections.join("\n")
}

/// Target, and what else tells it from other rows.
fn name(one: &CaseResult) -> String {
    let parameters = one.case.parameters.iter();
    let told = parameters.filter(|(name, _)| !["acks", "threads"].contains(&name.as_str()));
    let words = told.map(|(name, value)| format!("{name} {value}"));
    [one.case.target.clone()]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(", ")
}

fn acks(one: &CaseResult) -> Option<String> {
    one.case.parameters.get("acks").cloned()
}

/// Connections and what each has under way, and where a schedule was kept its rate.
fn shape(one: &CaseResult) -> String {
    let (case, in_flight) = (&one.case, one.case.in_flight.unwrap_or(1));
    let shape = format!("{} × {in_flight}, {} B", case.clients, case.size);
    match case.rate {
        0 => shape,
        rate => format!("{shape}, {}/s", thousands(rate as f64, 0)),
    }
}

fn streamed(run: &Run) -> Option<Streamed> {
    run.measured.as_ref()?.streamed
}

/// Bytes of all runs by seconds of all windows, in Chronik's megabytes.
fn bandwidth(one: &CaseResult) -> Option<f64> {
    let measured = || one.runs.iter().filter_map(|run| run.measured.as_ref());
    let bytes: u64 = measured().filter_map(|run| Some(run.streamed?.bytes)).sum();
    let window_ns: u64 = measured().map(|run| run.window_ns).sum();
    (bytes > 0 && window_ns > 0).then(|| bytes as f64 / MB / (window_ns as f64 / 1e9))
}

fn summary(cases: &[&CaseResult]) -> Table {
    let heads = [
        "Mode",
        "Target",
        "acks",
        "Shape",
        "Throughput",
        "95 % interval",
        "Bandwidth",
        "p50",
        "p99",
        "p99.9",
        "Failed",
    ];
    let mut table = Table::new(heads, 4);
    let is_like_published = |one: &CaseResult| {
        one.case.mode == PRODUCE && (one.case.in_flight, one.case.size) == (Some(128), 256)
    };
    if cases.iter().any(|one| is_like_published(one)) {
        for [acks, rate, bandwidth, p50, p99, p999] in PUBLISHED {
            let own = |text: &str| Some(text.to_owned());
            table.row([
                own("produce"),
                own("Chronik as published"),
                own(acks),
                own("1 × 128, 256 B"),
                own(rate),
                None,
                own(bandwidth),
                own(p50),
                own(p99),
                own(p999),
                own("0"),
            ]);
        }
    }
    for one in cases {
        let rate = one.summary.get(Metric::ObservedRate);
        let interval = rate.and_then(|rate| rate.interval);
        let mean = |metric: Metric| Some(human(one.summary.mean(metric)?, metric.unit()));
        table.row([
            Some(one.case.mode.name.to_string()),
            Some(name(one)),
            acks(one),
            Some(shape(one)),
            rate.map(|rate| format!("{} msg/s", figures(rate.mean))),
            interval.map(|one| format!("{} – {}", figures(one.low), figures(one.high))),
            bandwidth(one).map(|rate| format!("{} MB/s", figures(rate))),
            mean(Metric::LatencyP50),
            mean(Metric::LatencyP99),
            mean(Metric::LatencyP999),
            Some(
                one.runs
                    .iter()
                    .map(Run::error_count)
                    .sum::<u64>()
                    .to_string(),
            ),
        ]);
    }
    table
}

/// Every percentile over the messages of all runs, in microseconds and milliseconds as Chronik has it.
fn latencies(cases: &[&CaseResult]) -> Table {
    let heads = [
        "Mode", "Target", "acks", "p50", "p90", "p95", "p99", "p99.9", "max",
    ];
    let mut table = Table::new(heads, 3);
    for one in cases {
        let Some(latency) = pooled(one) else {
            continue;
        };
        let at = |quantile: f64| {
            let ns = latency.quantile(quantile) as f64;
            let (us, ms) = (thousands(ns / 1e3, 0), ns / 1e6);
            Some(format!("{us} μs ({ms:.2} ms)"))
        };
        table.row([
            Some(one.case.mode.name.to_string()),
            Some(name(one)),
            acks(one),
            at(0.5),
            at(0.9),
            at(0.95),
            at(0.99),
            at(0.999),
            at(1.0),
        ]);
    }
    table
}

fn pooled(one: &CaseResult) -> Option<Histogram> {
    let measured = one.runs.iter().filter_map(|run| run.measured.as_ref());
    let mut histograms = measured.filter_map(|run| run.service.as_ref());
    let mut all = histograms.next()?.clone();
    histograms.for_each(|one| all.merge(one));
    (all.count() > 0).then_some(all)
}

fn work(cases: &[&CaseResult]) -> Table {
    let heads = [
        "Mode",
        "Target",
        "acks",
        "Broker CPU per message",
        "95 % interval",
        "Broker CPU per MB",
        "Broker CPU",
        "Broker memory",
        "Commits",
        "Messages per sync",
        "Messages per request",
        "Client CPU",
    ];
    let mut table = Table::new(heads, 3);
    for one in cases {
        let mean = |metric: Metric| Some(human(one.summary.mean(metric)?, metric.unit()));
        let each = one.summary.get(Metric::NodeCpuPerMessage);
        let interval = each.and_then(|each| each.interval);
        let per_mb = one.summary.mean(Metric::NodeCpu).zip(bandwidth(one));
        let requests: u64 = one
            .runs
            .iter()
            .filter_map(|run| streamed(run)?.requests)
            .sum();
        let messages: f64 = one
            .runs
            .iter()
            .filter_map(|run| run.metrics.get(Metric::SenderMessages))
            .sum();
        table.row([
            Some(one.case.mode.name.to_string()),
            Some(name(one)),
            acks(one),
            each.map(|each| format!("{} µs", figures(each.mean))),
            interval.map(|one| format!("{} – {}", figures(one.low), figures(one.high))),
            per_mb.map(|(percent, rate)| format!("{} ms", figures(percent * 10.0 / rate))),
            mean(Metric::NodeCpu),
            one.summary
                .get(Metric::NodeRssPeak)
                .map(|peak| bytes(peak.max as u64)),
            one.summary
                .mean(Metric::SyncRate)
                .map(|rate| format!("{}/s", figures(rate))),
            one.summary.mean(Metric::MessagesPerSync).map(figures),
            (requests > 0).then(|| figures(messages / requests as f64)),
            mean(Metric::SenderCpu),
        ]);
    }
    table
}

fn read_back(cases: &[&CaseResult]) -> Table {
    let heads = [
        "Mode",
        "Target",
        "acks",
        "Acknowledged",
        "Lost",
        "Doubled",
        "Moved",
        "Damaged",
        "Verdict",
    ];
    let mut table = Table::new(heads, 3);
    for one in cases {
        let mut all: Option<Verified> = None;
        for verified in one.runs.iter().filter_map(|run| streamed(run)?.verified) {
            all.get_or_insert_default().add(verified);
        }
        let Some(all) = all else {
            continue;
        };
        let count = |count: u64| Some(thousands(count as f64, 0));
        table.row([
            Some(one.case.mode.name.to_string()),
            Some(name(one)),
            acks(one),
            count(all.acked),
            count(all.lost),
            count(all.duplicated),
            count(all.moved),
            count(all.damaged),
            Some(if all.is_clean() { "pass" } else { "FAIL" }.to_owned()),
        ]);
    }
    table
}

fn ratios(results: &Results, cases: &[&CaseResult]) -> Table {
    let heads = [
        "Mode",
        "Target",
        "acks",
        "Against",
        "Of",
        "Verdict",
        "Ratio",
        "95 % interval",
    ];
    let mut table = Table::new(heads, 6);
    let of = |key: &str| cases.iter().find(|one| one.case.key() == key);
    for found in &results.comparisons {
        let (Some(subject), Some(baseline)) = (of(&found.subject), of(&found.baseline)) else {
            continue;
        };
        let comparison = &found.comparison;
        table.row([
            Some(subject.case.mode.name.to_string()),
            Some(name(subject)),
            acks(subject),
            Some(name(baseline)),
            Some(found.metric.label().to_owned()),
            Some(found.verdict().to_owned()),
            comparison
                .ratio
                .map(|ratio| format!("{} ×", figures(ratio))),
            comparison
                .interval
                .map(|one| format!("{} – {}", figures(one.low), figures(one.high))),
        ]);
    }
    table
}

/// A run as chronik-bench writes it, with the columns and fields of its `BenchmarkResults`.
#[derive(Debug, Serialize)]
struct Row {
    timestamp: String,
    mode: String,
    target: String,
    acks: String,
    duration: Seconds,
    total_messages: u64,
    failed_messages: u64,
    total_bytes: u64,
    throughput_msg_per_sec: f64,
    throughput_mb_per_sec: f64,
    success_rate_pct: f64,
    latency_p50_us: u64,
    latency_p90_us: u64,
    latency_p95_us: u64,
    latency_p99_us: u64,
    latency_p999_us: u64,
    latency_max_us: u64,
    message_size: u64,
    concurrency: u32,
    compression: String,
}

#[derive(Debug, Serialize)]
struct Seconds {
    secs: u64,
    nanos: u64,
}

impl Row {
    fn of(results: &Results, one: &CaseResult, measured: &Measurement) -> Self {
        let parameter = |name: &str, otherwise: &str| {
            let found = one.case.parameters.get(name);
            found.map_or(otherwise.to_owned(), Clone::clone)
        };
        let us = |quantile: f64| {
            measured
                .service
                .as_ref()
                .map_or(0, |latency| latency.quantile(quantile) / 1_000)
        };
        let failed: u64 = measured.errors.values().sum();
        let (window_s, bytes) = (
            measured.window_ns as f64 / 1e9,
            measured.streamed.map_or(0, |streamed| streamed.bytes),
        );
        let all = measured.completed + failed;
        Self {
            timestamp: results.generated.clone(),
            mode: one.case.mode.name.to_string(),
            target: name(one),
            acks: parameter("acks", ""),
            duration: Seconds {
                secs: measured.window_ns / 1_000_000_000,
                nanos: measured.window_ns % 1_000_000_000,
            },
            total_messages: measured.completed,
            failed_messages: failed,
            total_bytes: bytes,
            throughput_msg_per_sec: measured.completed as f64 / window_s,
            throughput_mb_per_sec: bytes as f64 / MB / window_s,
            success_rate_pct: 100.0 * measured.completed as f64 / all.max(1) as f64,
            latency_p50_us: us(0.5),
            latency_p90_us: us(0.9),
            latency_p95_us: us(0.95),
            latency_p99_us: us(0.99),
            latency_p999_us: us(0.999),
            latency_max_us: us(1.0),
            message_size: one.case.size,
            concurrency: one.case.clients * one.case.in_flight.unwrap_or(1),
            compression: parameter("compression", "none"),
        }
    }

    fn latencies_us(&self) -> [u64; 6] {
        [
            self.latency_p50_us,
            self.latency_p90_us,
            self.latency_p95_us,
            self.latency_p99_us,
            self.latency_p999_us,
            self.latency_max_us,
        ]
    }
}

/// Every run that produced or consumed.
fn rows(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for one in &results.cases {
        let measured = one.runs.iter().filter_map(|run| run.measured.as_ref());
        let of_topics = measured.filter(|run| run.streamed.is_some());
        rows.extend(of_topics.map(|run| Row::of(results, one, run)));
    }
    rows
}

const CSV_HEADER: &str = "timestamp,mode,duration_secs,total_messages,failed_messages,total_bytes,\
    throughput_msg_per_sec,throughput_mb_per_sec,success_rate_pct,latency_p50_us,latency_p90_us,\
    latency_p95_us,latency_p99_us,latency_p999_us,latency_max_us,latency_p50_ms,latency_p90_ms,\
    latency_p95_ms,latency_p99_ms,latency_p999_ms,latency_max_ms,message_size,concurrency,compression,\
    target,acks";

/// A line per run with chronik-bench's columns, and two of ours behind them.
#[must_use]
pub fn csv(results: &Results) -> String {
    let mut text = format!("{CSV_HEADER}\n");
    for row in rows(results) {
        let us = row.latencies_us().map(|us| us.to_string()).join(",");
        let ms = row
            .latencies_us()
            .map(|us| format!("{:.3}", us as f64 / 1e3))
            .join(",");
        let seconds = row.duration.secs as f64 + row.duration.nanos as f64 / 1e9;
        text += &format!(
            "{},{},{seconds:.3},{},{},{},{:.2},{:.2},{:.2},{us},{ms},{},{},{},\"{}\",{}\n",
            row.timestamp,
            row.mode,
            row.total_messages,
            row.failed_messages,
            row.total_bytes,
            row.throughput_msg_per_sec,
            row.throughput_mb_per_sec,
            row.success_rate_pct,
            row.message_size,
            row.concurrency,
            row.compression,
            row.target,
            row.acks,
        );
    }
    text
}

/// An object per run with the fields of chronik-bench's, and two of ours.
///
/// # Errors
/// Never: the fields are numbers and texts.
pub fn json(results: &Results) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&rows(results))? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Case, Environment, SCHEMA_VERSION, Setup};
    use crate::tally::Tally;
    use crate::workload::kafka::CONSUME;

    fn measured(verified: Option<Verified>) -> Measurement {
        let mut tally = Tally::new();
        for number in 0..1_000 {
            tally.sent();
            tally.answered(0, 1_000_000 + number);
        }
        tally.sent();
        tally.failed("not-leader-or-follower");
        Measurement {
            streamed: Some(Streamed {
                requests: Some(100),
                bytes: 256_000,
                verified,
            }),
            ..tally.over(500_000_000)
        }
    }

    fn results(verified: Verified) -> Results {
        let produce = Case::new("telpher", Area::Kafka, PRODUCE)
            .in_flight(128)
            .size(256)
            .parameter("acks", "all")
            .parameter("durability", "disk");
        let consume = Case::new("kafka", Area::Kafka, CONSUME).size(1024);
        let consumed = Measurement {
            service: None,
            errors: std::collections::BTreeMap::new(),
            ..measured(None)
        };
        let result = |case: Case, measured| {
            let run = Run::of(&case, 1, 1, measured);
            CaseResult::of(case, vec![run])
        };
        Results {
            schema_version: SCHEMA_VERSION,
            name: "kafka".to_owned(),
            generated: "2026-06-26 08:01:47".to_owned(),
            environment: Environment::default(),
            setup: Setup::default(),
            cases: vec![
                result(produce, measured(Some(verified))),
                result(consume, consumed),
            ],
            comparisons: Vec::new(),
            sweeps: Vec::new(),
        }
    }

    const CLEAN: Verified = Verified {
        acked: 1_500,
        found: 1_500,
        lost: 0,
        duplicated: 0,
        moved: 0,
        damaged: 0,
    };

    #[test]
    fn the_rows_are_those_of_the_published_report_beside_it() {
        let text = chronik(&results(CLEAN));
        for expected in [
            "| produce | Chronik as published | 1 | 1 × 128, 256 B | 309,590 msg/s |",
            "| produce | telpher, durability disk | all | 1 × 128, 256 B | 2,000 msg/s |",
            "| consume | kafka |",
            "| produce | telpher, durability disk | all | 1,500 | 0 | 0 | 0 | 0 | pass |",
            "1,001 μs (1.00 ms)",
        ] {
            assert!(text.contains(expected), "{expected} is missing:\n{text}");
        }
    }

    #[test]
    fn what_is_lost_fails() {
        let lost = Verified { lost: 1, ..CLEAN };
        let text = chronik(&results(lost));
        assert!(text.contains("| 1,500 | 1 | 0 | 0 | 0 | FAIL |"), "{text}");
    }

    #[test]
    fn the_files_have_the_columns_and_fields_of_chronik_bench() {
        let results = results(CLEAN);
        let csv = csv(&results);
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0][..3], ["timestamp", "mode", "duration_secs"]);
        assert_eq!(
            lines[1][1..9],
            [
                "produce", "0.500", "1000", "1", "256000", "2000.00", "0.49", "99.90"
            ]
        );
        let json: serde_json::Value = serde_json::from_str(&json(&results).unwrap()).unwrap();
        assert_eq!(json[0]["total_messages"], 1_000);
        assert_eq!(json[0]["duration"]["nanos"], 500_000_000);
        assert_eq!(
            (&json[1]["mode"], &json[1]["latency_p50_us"]),
            (&"consume".into(), &0.into())
        );
    }

    #[test]
    fn results_without_topics_have_no_such_tables() {
        assert_eq!(current(&crate::fixture::results()), "");
    }
}

//! Topics in the form of Chronik's report: throughput, bandwidth and latencies for each `acks`
//! setting. Added to that report: intervals, the broker's work for each message, the records read
//! back, and ratios.

mod rows;

pub use rows::{csv, json};

use super::Table;
use super::common::{methodology, of, ratio, sections, span};
use crate::format::{bytes, figures, human, thousands};
use crate::measurement::{TopicTraffic, Verification};
use crate::model::{Area, CaseResult, Metric, Mode, Results, Run};
use crate::stats::{Interval, describe};
use meter::histogram::Histogram;

/// Chronik's published figures for 128 producers with 256 bytes each, standalone
/// (`BASELINE_PERFORMANCE.md`, 2025-11-28): acks, rate, bandwidth, p50, p99, p99.9. The first row's
/// own count over its 30 seconds is 361,192 a second: its clock ran on for five.
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

/// Bytes in one of Chronik's megabytes.
const MB: f64 = (1 << 20) as f64;

/// Renders the report.
#[must_use]
pub fn chronik(results: &Results) -> String {
    let current = current(results);
    if current.is_empty() {
        return "No topics were measured.\n".to_owned();
    }
    let methodology = methodology(results);
    format!("# Benchmark Results\n\n{current}\n## Methodology\n\n{methodology}")
}

/// Renders only the tables. Empty when no topics were measured.
pub(super) fn current(results: &Results) -> String {
    let cases: Vec<_> = of(results, Area::Kafka).collect();
    if cases.is_empty() {
        return String::new();
    }
    let tables = [
        ("Summary Table", summary(&cases)),
        ("Latency Distribution", latencies(&cases)),
        ("Work For Each Message", work(&cases)),
        ("Read Back", read_back(&cases)),
        ("End To End Against Its Floors", end_to_end(&cases)),
        ("Ratios", ratios(results, &cases)),
    ];
    sections(tables)
}

/// Names a row: the target, and the parameters that have no column of their own.
fn name(one: &CaseResult) -> String {
    let parameters = one.case.parameters.iter();
    let parameters = parameters.filter(|(name, _)| !["acks", "threads"].contains(&name.as_str()));
    let words = parameters.map(|(name, value)| format!("{name} {value}"));
    [one.case.target.clone()]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(", ")
}

fn acks(one: &CaseResult) -> Option<String> {
    one.case.parameters.get("acks").cloned()
}

/// Connections × requests in flight, message size, and the rate of a paced case.
fn shape(one: &CaseResult) -> String {
    let (case, in_flight) = (&one.case, one.case.in_flight.unwrap_or(1));
    let shape = format!("{} × {in_flight}, {} B", case.clients, case.size);
    match case.rate {
        0 => shape,
        rate => format!("{shape}, {}/s", thousands(rate as f64, 0)),
    }
}

fn streamed(run: &Run) -> Option<TopicTraffic> {
    run.measured.as_ref()?.streamed
}

/// Bandwidth over all runs in Chronik's megabytes per second.
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
        one.case.mode == Mode::PRODUCE && (one.case.in_flight, one.case.size) == (Some(128), 256)
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
            interval.map(span),
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

/// Percentiles over the messages of all runs, in microseconds and milliseconds as in Chronik's
/// report.
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
            interval.map(span),
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
        let mut all: Option<Verification> = None;
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

/// End-to-end p50 of each case as a ratio to its floors: a message on its way to a consumer needs
/// one sync and two round trips. The ratio is taken repeat by repeat, because cases of one repeat
/// ran side by side.
fn end_to_end(cases: &[&CaseResult]) -> Table {
    let heads = [
        "Target",
        "acks",
        "p50 over a raw sync and two raw round trips",
        "95 % interval",
    ];
    let mut table = Table::new(heads, 2);
    let is_alone = |one: &CaseResult| (one.case.clients, one.case.in_flight) == (1, Some(1));
    let floor = |target: &str| {
        let mut floors = cases.iter().filter(|one| is_alone(one));
        floors.find(|one| one.case.target == target)
    };
    let (Some(disk), Some(echo)) = (floor("disk-floor"), floor("floor")) else {
        return table;
    };
    let p50 = |one: &CaseResult, run: usize| one.runs.get(run)?.metrics.get(Metric::LatencyP50);
    for one in cases.iter().filter(|one| one.case.mode == Mode::END_TO_END) {
        let ratio = |run| Some(p50(one, run)? / (p50(disk, run)? + 2.0 * p50(echo, run)?));
        let ratios: Vec<f64> = (0..one.runs.len()).filter_map(ratio).collect();
        let Some(found) = describe(&ratios) else {
            continue;
        };
        let interval = found.interval.map(Interval::from_zero);
        table.row([
            Some(name(one)),
            acks(one),
            Some(format!("{} ×", figures(found.mean))),
            interval.map(span),
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
        let [ratio, interval] = ratio(&found.comparison);
        table.row([
            Some(subject.case.mode.name.to_string()),
            Some(name(subject)),
            acks(subject),
            Some(name(baseline)),
            Some(found.metric.label().to_owned()),
            Some(found.verdict().to_owned()),
            ratio,
            interval,
        ]);
    }
    table
}

#[cfg(test)]
mod tests;

//! Quota takes in the form of the rate limiter's report: answers by status, latencies, endpoints,
//! thresholds. Added to that report: intervals, the server's work for each request, the cost of the
//! generator, and the exact count that one bucket has to allow.

mod threshold;

pub use threshold::{Threshold, thresholds};

use super::Table;
use super::common::{methodology, of, ratio, sections, span};
use crate::format::{figures, human, thousands};
use crate::measurement::{Answers, exactness, excess};
use crate::model::{Area, CaseResult, Metric, Mode, Results, Run};
use crate::process::Role;
use crate::stats::describe;
use meter::histogram::Histogram;

/// The published figures of the mix: 50 users, 10,000 agents, 30 seconds.
const PUBLISHED_MIX: PublishedFigures = PublishedFigures {
    overall: ["11,616", "381.08/s", "0", "2,804 (24.13 %)", "8,812"],
    latency: ["4.62", "1.83", "7.86", "11.73", "n/a", "506.83"],
};

/// The published figures of 1,000 requests for one agent over 50 connections.
const PUBLISHED_COUNT: PublishedFigures = PublishedFigures {
    overall: ["1,000", "503.91/s", "0", "881 (88.10 %)", "119"],
    latency: ["99.22", "92", "124", "129", "139", "143"],
};

struct PublishedFigures {
    /// Requests, rate, errors, refused, allowed.
    overall: [&'static str; 5],
    /// Mean, p50, p90, p95, p99, max in milliseconds.
    latency: [&'static str; 6],
}

/// Renders the report.
#[must_use]
pub fn limiter(results: &Results) -> String {
    let current = current(results);
    if current.is_empty() {
        return "No takes were measured.\n".to_owned();
    }
    let methodology = methodology(results);
    format!("# Benchmark Results\n\n{current}\n## Methodology\n\n{methodology}")
}

/// Renders only the tables. Empty when no takes were measured.
pub(super) fn current(results: &Results) -> String {
    let cases: Vec<_> = of(results, Area::Quota).map(AnsweredCase::of).collect();
    if cases.is_empty() {
        return String::new();
    }
    let tables = [
        ("Overall Performance", overall(&cases)),
        ("Latency Distribution (ms)", latencies(&cases)),
        ("Work For Each Request", work(&cases)),
        ("Per-Endpoint Breakdown (ms)", endpoints(&cases)),
        ("Connection Timing (ms)", phases(&cases)),
        ("Exactness of One Bucket", exact(&cases)),
        ("Bucket Shared By Several Nodes", shared_bucket(&cases)),
        ("Thresholds", threshold_table(&cases)),
        ("Ratios", ratios(results, &cases)),
    ];
    sections(tables)
}

/// A case with the merged answers of all its runs.
struct AnsweredCase<'a> {
    one: &'a CaseResult,
    answered: Answers,
}

impl<'a> AnsweredCase<'a> {
    fn of(one: &'a CaseResult) -> Self {
        let mut answered = Answers::default();
        for run in &one.runs {
            if let Some(of_run) = answers(run) {
                answered.merge(of_run);
            }
        }
        Self { one, answered }
    }

    /// Names a row: the target, and the parameters that distinguish it from other rows.
    fn name(&self) -> String {
        let case = &self.one.case;
        let mut words = vec![case.target.clone()];
        let ours = [
            "nodes",
            "agents",
            "capacity",
            "keep-alive",
            "door",
            "batch",
            "limits",
        ];
        for name in ours {
            if let Some(value) = case.parameters.get(name) {
                words.push(format!("{name} {value}"));
            }
        }
        if let Some(depth) = case.in_flight.filter(|depth| *depth > 1) {
            words.push(format!("pipelined {depth}"));
        }
        if case.rate > 0 {
            words.push(format!("{}/s", thousands(case.rate as f64, 0)));
        }
        words.join(", ")
    }

    fn mean(&self, metric: Metric) -> Option<f64> {
        self.one.summary.mean(metric)
    }

    /// Returns the published figures of this mode, for the first row only.
    fn published(&self, is_first: bool) -> Option<&'static PublishedFigures> {
        let case = &self.one.case;
        match is_first {
            true if case.mode == Mode::MIX => Some(&PUBLISHED_MIX),
            true if case.mode == Mode::COUNT => Some(&PUBLISHED_COUNT),
            _ => None,
        }
    }
}

fn answers(run: &Run) -> Option<&Answers> {
    run.measured.as_ref()?.answered.as_ref()
}

const AS_PUBLISHED: &str = "as published";

fn overall(cases: &[AnsweredCase<'_>]) -> Table {
    let heads = [
        "Target",
        "Runs",
        "Requests",
        "Throughput",
        "95 % interval",
        "Errors",
        "429",
        "200",
        "Checks",
    ];
    let mut table = Table::new(heads, 1);
    for (position, shown) in cases.iter().enumerate() {
        if let Some(published) = shown.published(position == 0) {
            let [requests, rate, errors, limited, allowed] = published.overall.map(str::to_owned);
            table.row([
                Some(AS_PUBLISHED.to_owned()),
                Some("1".to_owned()),
                Some(requests),
                Some(rate),
                None,
                Some(errors),
                Some(limited),
                Some(allowed),
                None,
            ]);
        }
        let (allowed, limited) = (shown.answered.allowed(), shown.answered.limited());
        let all = allowed + limited;
        let share = 100.0 * limited as f64 / all.max(1) as f64;
        let rate = shown.one.summary.get(Metric::ObservedRate);
        let interval = rate.and_then(|rate| rate.interval);
        let (held, made) = (shown.answered.checks_held, shown.answered.checks);
        table.row([
            Some(shown.name()),
            Some(shown.one.runs.len().to_string()),
            Some(count(all)),
            rate.map(|rate| format!("{}/s", figures(rate.mean))),
            interval.map(span),
            Some(count(shown.one.runs.iter().map(Run::error_count).sum())),
            Some(format!("{} ({share:.2} %)", count(limited))),
            Some(count(allowed)),
            (made > 0).then(|| format!("{} of {}", count(held), count(made))),
        ]);
    }
    table
}

fn latencies(cases: &[AnsweredCase<'_>]) -> Table {
    let heads = [
        "Target",
        "Mean",
        "P50",
        "P90",
        "P95",
        "P99",
        "Max",
        "P99 from intention",
    ];
    let mut table = Table::new(heads, 1);
    for (position, shown) in cases.iter().enumerate() {
        if let Some(published) = shown.published(position == 0) {
            let cells = published.latency.map(|cell| Some(cell.to_owned()));
            let name = [Some(AS_PUBLISHED.to_owned())];
            table.row(name.into_iter().chain(cells).chain([None]));
        }
        let mean = |metric: Metric| shown.mean(metric).map(millis);
        table.row([
            Some(shown.name()),
            mean(Metric::LatencyMean),
            mean(Metric::LatencyP50),
            mean(Metric::LatencyP90),
            mean(Metric::LatencyP95),
            mean(Metric::LatencyP99),
            mean(Metric::LatencyMax),
            mean(Metric::ResponseP99),
        ]);
    }
    table
}

fn work(cases: &[AnsweredCase<'_>]) -> Table {
    let heads = [
        "Target",
        "Server CPU",
        "95 % interval",
        "Of that",
        "Generator CPU",
        "Server memory",
    ];
    let mut table = Table::new(heads, 1);
    for shown in cases {
        let cpu = shown.one.summary.get(Metric::NodeCpuPerMessage);
        let interval = cpu.and_then(|cpu| cpu.interval);
        let parts = parts(shown.one);
        let generator = shown.mean(Metric::SenderCpuSeconds);
        let generator = generator.zip(shown.mean(Metric::ObservedMessages));
        let memory = shown.mean(Metric::NodeRssPeak);
        table.row([
            Some(shown.name()),
            cpu.map(|cpu| micros(cpu.mean)),
            interval.map(span),
            (parts.len() > 1).then(|| parts.join(" + ")),
            generator.map(|(seconds, messages)| micros(seconds * 1e6 / messages)),
            memory.map(|bytes| human(bytes, Metric::NodeRssPeak.unit())),
        ]);
    }
    table
}

/// CPU time per request of each server process.
fn parts(one: &CaseResult) -> Vec<String> {
    let names: Vec<&str> = one.runs.first().map_or(Vec::new(), |run| {
        processes(run).map(|role| role.name.as_str()).collect()
    });
    let of = |name: &&str| {
        let each = one.runs.iter().filter_map(|run| {
            let used = processes(run).find(|role| role.name == *name)?.cpu_ns?;
            let messages = run.metrics.get(Metric::ObservedMessages)?;
            Some(used as f64 / 1e3 / messages)
        });
        let mean = describe(&each.collect::<Vec<_>>())?.mean;
        Some(format!("{name} {}", micros(mean)))
    };
    names.iter().filter_map(of).collect()
}

fn processes(run: &Run) -> impl Iterator<Item = &crate::process::RoleUsage> {
    let usage = run.measured.iter().flat_map(|measured| &measured.usage);
    let roles = usage.flat_map(|usage| &usage.roles);
    roles.filter(|role| role.role == Role::Node)
}

fn endpoints(cases: &[AnsweredCase<'_>]) -> Table {
    let heads = [
        "Target", "Endpoint", "Answer", "Requests", "Mean", "P50", "P90", "P95", "P99", "Max",
    ];
    let mut table = Table::new(heads, 3);
    for shown in cases {
        for endpoint in &shown.answered.endpoints {
            for (answer, latency) in [("200", &endpoint.allowed), ("429", &endpoint.limited)] {
                let Some(summary) = latency.summary() else {
                    continue;
                };
                let ms = |ns: u64| Some(millis(ns as f64 / 1e6));
                table.row([
                    Some(shown.name()),
                    Some(endpoint.name.clone()),
                    Some(answer.to_owned()),
                    Some(count(summary.count)),
                    Some(millis(summary.mean_ns / 1e6)),
                    ms(summary.p50_ns),
                    ms(summary.p90_ns),
                    ms(summary.p95_ns),
                    ms(summary.p99_ns),
                    ms(summary.max_ns),
                ]);
            }
        }
    }
    table
}

fn phases(cases: &[AnsweredCase<'_>]) -> Table {
    let mut table = Table::new(["Target", "Phase", "Min", "Mean", "Median", "Max"], 2);
    for shown in cases {
        for phase in &shown.answered.phases {
            let at = |quantile| {
                let ns = Histogram::quantile(&phase.time, quantile);
                Some(millis(ns as f64 / 1e6))
            };
            let mean = phase.time.summary().map(|one| millis(one.mean_ns / 1e6));
            table.row([
                Some(shown.name()),
                Some(phase.name.clone()),
                at(0.0),
                mean,
                at(0.5),
                at(1.0),
            ]);
        }
    }
    table
}

fn exact(cases: &[AnsweredCase<'_>]) -> Table {
    let heads = [
        "Target",
        "Run",
        "Seconds",
        "100 + ⌊10 · t⌋",
        "Allowed",
        "Exact (± 1)",
    ];
    let mut table = Table::new(heads, 1);
    for shown in cases {
        for run in &shown.one.runs {
            let Some(exact) = answers(run).and_then(exactness) else {
                continue;
            };
            let seconds = run.metrics.get(Metric::SenderSeconds);
            table.row([
                Some(shown.name()),
                Some(run.repeat.to_string()),
                seconds.map(|seconds| format!("{seconds:.3}")),
                Some(count(exact.must_allow)),
                Some(count(exact.allowed)),
                Some(pass_or_fail(exact.holds()).to_owned()),
            ]);
        }
    }
    table
}

/// Takes that several nodes allowed from the bucket that they share, against its limit.
fn shared_bucket(cases: &[AnsweredCase<'_>]) -> Table {
    let heads = [
        "Target",
        "Run",
        "Seconds",
        "At most",
        "Allowed",
        "Too many",
        "Left unused",
    ];
    let mut table = Table::new(heads, 1);
    for shown in cases {
        for run in &shown.one.runs {
            let Some(excess) = answers(run).and_then(excess) else {
                continue;
            };
            let seconds = run.metrics.get(Metric::SenderSeconds);
            let unused = excess.may_allow.saturating_sub(excess.allowed);
            table.row([
                Some(shown.name()),
                Some(run.repeat.to_string()),
                seconds.map(|seconds| format!("{seconds:.3}")),
                Some(count(excess.may_allow)),
                Some(count(excess.allowed)),
                Some(count(excess.over())),
                Some(count(unused)),
            ]);
        }
    }
    table
}

fn threshold_table(cases: &[AnsweredCase<'_>]) -> Table {
    let mut table = Table::new(["Target", "Threshold", "Limit", "Result", "Status"], 2);
    for shown in cases
        .iter()
        .filter(|shown| shown.one.case.mode == Mode::MIX)
    {
        for threshold in thresholds(shown.one) {
            let unit = threshold.unit;
            table.row([
                Some(shown.name()),
                Some(threshold.name.to_owned()),
                Some(format!("< {} {unit}", figures(threshold.limit))),
                Some(format!("{} {unit}", figures(threshold.found))),
                Some(pass_or_fail(threshold.is_met()).to_owned()),
            ]);
        }
    }
    table
}

fn ratios(results: &Results, cases: &[AnsweredCase<'_>]) -> Table {
    let heads = [
        "Target",
        "Against",
        "Of",
        "Verdict",
        "Ratio",
        "95 % interval",
    ];
    let mut table = Table::new(heads, 4);
    let name = |key: &str| {
        let shown = cases.iter().find(|shown| shown.one.case.key() == key);
        shown.map(AnsweredCase::name)
    };
    for found in &results.comparisons {
        let [ratio, interval] = ratio(&found.comparison);
        table.row([
            name(&found.subject),
            name(&found.baseline),
            Some(found.metric.label().to_owned()),
            Some(found.verdict().to_owned()),
            ratio,
            interval,
        ]);
    }
    table
}

fn pass_or_fail(holds: bool) -> &'static str {
    match holds {
        true => "pass",
        false => "FAIL",
    }
}

fn count(count: u64) -> String {
    thousands(count as f64, 0)
}

fn micros(us: f64) -> String {
    format!("{} µs", figures(us))
}

/// Formats milliseconds with three decimals, enough to distinguish loopback latencies.
fn millis(ms: f64) -> String {
    format!("{ms:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Endpoint, Measurement};
    use crate::model::{Case, Environment, SCHEMA_VERSION, Setup};
    use crate::process::{RoleUsage, Usage};
    use crate::tally::Tally;

    fn usage(role: Role, name: &str, cpu_ns: u64) -> RoleUsage {
        RoleUsage {
            role,
            name: name.to_owned(),
            cpu_ns: Some(cpu_ns),
            wall_ns: 2_000_000_000,
            cpu_step_ns: 1,
            rss_bytes: Some(1),
            rss_peak_bytes: Some(60 << 20),
        }
    }

    /// 1,000 takes in 1.984 s, of which `allowed` were allowed.
    fn measured(allowed: u64) -> Measurement {
        let mut endpoint = Endpoint {
            name: "/api/request".to_owned(),
            ..Endpoint::default()
        };
        let mut tally = Tally::new();
        for number in 0..1_000 {
            tally.sent();
            tally.answered(0, 2_000_000);
            match number < allowed {
                true => endpoint.allowed.record(2_000_000),
                false => endpoint.limited.record(2_000_000),
            }
        }
        let answered = Answers {
            endpoints: vec![endpoint],
            must_allow: Some(119),
            ..Answers::default()
        };
        let roles = vec![
            usage(Role::Node, "redis", 40_000_000),
            usage(Role::Node, "express", 360_000_000),
            usage(Role::Sender, "sender", 5_000_000),
        ];
        Measurement {
            usage: Some(Usage { roles, host: None }),
            answered: Some(answered),
            ..tally.over(1_984_000_000)
        }
    }

    fn results(allowed: u64) -> Results {
        let case = Case::new("express", Area::Quota, Mode::COUNT)
            .clients(50)
            .parameter("agents", 1)
            .parameter("keep-alive", "off");
        let run = Run::of(&case, 1, 1, measured(allowed));
        Results {
            schema_version: SCHEMA_VERSION,
            name: "quota".to_owned(),
            generated: "2026-06-26 08:01:47".to_owned(),
            environment: Environment::default(),
            setup: Setup::default(),
            cases: vec![CaseResult::of(case, vec![run])],
            comparisons: Vec::new(),
            sweeps: Vec::new(),
        }
    }

    #[test]
    fn denials_are_not_errors_and_server_cpu_is_summed_over_parts() {
        let text = limiter(&results(119));
        for expected in [
            "| as published | 1 | 1,000 | 503.91/s |",
            "| express, agents 1, keep-alive off | 1 | 1,000 | 504/s | 0 | 881 (88.10 %) | 119 |",
            "| 400 µs | redis 40.0 µs + express 360 µs | 5.00 µs | 120.0 MiB |",
            "| /api/request | 429 | 881 |",
            "| 1.984 | 119 | 119 | pass |",
        ] {
            assert!(text.contains(expected), "{expected} is missing:\n{text}");
        }
    }

    #[test]
    fn a_bucket_that_allows_too_many_fails() {
        let text = limiter(&results(189));
        assert!(text.contains("| 1.984 | 119 | 189 | FAIL |"), "{text}");
    }

    #[test]
    fn takes_of_sharing_nodes_are_compared_with_their_bucket() {
        let mut results = results(119);
        let measured = results.cases[0].runs[0].measured.as_mut().unwrap();
        let answered = measured.answered.as_mut().unwrap();
        (answered.must_allow, answered.may_allow) = (None, Some(118));
        let text = limiter(&results);
        assert!(text.contains("| 1.984 | 118 | 119 | 1 | 0 |"), "{text}");
    }

    #[test]
    fn results_without_takes_have_no_such_tables() {
        assert_eq!(current(&crate::fixture::results()), "");
    }
}

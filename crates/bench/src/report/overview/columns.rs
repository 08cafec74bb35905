//! Columns of the overview tables: each has a head and a function that formats a case's cell.

use crate::format::{bytes, figures, human, human_interval, margin};
use crate::model::{CaseResult, Metric, Run, Unit};

pub(super) type Column = (&'static str, fn(&CaseResult) -> Option<String>);

pub(super) const BRIEF: &[Column] = &[
    ("Throughput", |one| with_margin(one, Metric::ObservedRate)),
    ("Mean latency", |one| with_margin(one, Metric::LatencyMean)),
    ("p50", |one| mean(one, Metric::LatencyP50)),
    ("p99", |one| mean(one, Metric::LatencyP99)),
    ("p99.9*", |one| {
        one.summary
            .pooled
            .service
            .map(|pooled| human_ns(pooled.p999_ns))
    }),
    ("CV", variation),
    ("Node CPU/msg", |one| mean(one, Metric::NodeCpuPerMessage)),
    ("All CPU/msg", |one| mean(one, Metric::TotalCpuPerMessage)),
    ("Node RSS", |one| largest(one, Metric::NodeRssPeak)),
    ("Syncs/s", |one| mean(one, Metric::SyncRate)),
    ("Per sync", |one| number(one, Metric::MessagesPerSync)),
    ("p50 sync", |one| mean(one, Metric::SyncP50)),
    ("Written", |one| {
        Some(format!("{} ×", number(one, Metric::WriteAmplification)?))
    }),
    ("Errors", errors),
];

pub(super) const FULL: &[Column] = &[
    ("Throughput", |one| with_interval(one, Metric::ObservedRate)),
    ("Mean latency", |one| {
        with_interval(one, Metric::LatencyMean)
    }),
    ("p50", |one| mean(one, Metric::LatencyP50)),
    ("p99", |one| with_interval(one, Metric::LatencyP99)),
    ("p99.9 pooled\nmax", |one| {
        let tail = one
            .summary
            .pooled
            .service
            .map(|pooled| human_ns(pooled.p999_ns));
        two_lines(tail, largest(one, Metric::LatencyMax))
    }),
    ("Response\np99", |one| mean(one, Metric::ResponseP99)),
    ("CV\nset-up", |one| {
        two_lines(variation(one), mean(one, Metric::Setup))
    }),
    ("Total CPU", |one| with_interval(one, Metric::TotalCpu)),
    ("Node CPU", |one| with_interval(one, Metric::NodeCpu)),
    ("CPU/msg node\nall roles", |one| {
        two_lines(
            mean(one, Metric::NodeCpuPerMessage),
            mean(one, Metric::TotalCpuPerMessage),
        )
    }),
    ("Peak RSS node\nsender", |one| {
        two_lines(
            largest(one, Metric::NodeRssPeak),
            largest(one, Metric::SenderRssPeak),
        )
    }),
    ("Blocks/s\nsyncs/s", |one| {
        two_lines(mean(one, Metric::BlockRate), mean(one, Metric::SyncRate))
    }),
    ("Per sync\np50 sync", |one| {
        two_lines(
            number(one, Metric::MessagesPerSync),
            mean(one, Metric::SyncP50),
        )
    }),
    ("Written", |one| {
        Some(format!("{} ×", number(one, Metric::WriteAmplification)?))
    }),
    ("Errors", errors),
];

/// Formats a mean with its interval on the second line.
fn with_interval(result: &CaseResult, metric: Metric) -> Option<String> {
    let described = result.summary.get(metric)?;
    let mean = human(described.mean, metric.unit());
    Some(match described.interval {
        Some(interval) => format!("{mean}\n{}", human_interval(interval, metric.unit())),
        None => mean,
    })
}

/// Formats two figures, one below the other.
fn two_lines(first: Option<String>, second: Option<String>) -> Option<String> {
    let absent = || crate::format::ABSENT.to_owned();
    (first.is_some() || second.is_some()).then(|| {
        format!(
            "{}\n{}",
            first.unwrap_or_else(absent),
            second.unwrap_or_else(absent)
        )
    })
}

fn mean(result: &CaseResult, metric: Metric) -> Option<String> {
    Some(human(result.summary.mean(metric)?, metric.unit()))
}

/// Formats a mean that has no unit and may be less than one.
fn number(result: &CaseResult, metric: Metric) -> Option<String> {
    Some(figures(result.summary.mean(metric)?))
}

fn with_margin(result: &CaseResult, metric: Metric) -> Option<String> {
    let described = result.summary.get(metric)?;
    let mean = human(described.mean, metric.unit());
    Some(match described.interval {
        Some(interval) => format!("{mean} {}", margin(described.mean, interval)),
        None => mean,
    })
}

fn largest(result: &CaseResult, metric: Metric) -> Option<String> {
    let largest = result.summary.get(metric)?.max;
    Some(if metric.unit() == Unit::Bytes {
        bytes(largest as u64)
    } else {
        human(largest, metric.unit())
    })
}

fn variation(result: &CaseResult) -> Option<String> {
    let variation = result
        .summary
        .get(*result.case.headline().first()?)?
        .variation?;
    Some(format!("{:.1} %", 100.0 * variation))
}

fn errors(result: &CaseResult) -> Option<String> {
    let counted = result.summary.get(Metric::SenderErrors).is_some();
    counted.then(|| {
        result
            .runs
            .iter()
            .map(Run::error_count)
            .sum::<u64>()
            .to_string()
    })
}

fn human_ns(ns: u64) -> String {
    human(ns as f64 / 1e6, Unit::Millis)
}

//! Tables of the SLIM suite: one for modes judged by latency, one for modes judged by throughput.

use crate::flags;
use crate::format::{count, decimal, fixed, interval_decimal};
use crate::model::{CaseResult, CountedBy, Metric, Results, Run};
use crate::report::Table;

/// Renders a section for each mode.
pub(super) fn modes(results: &Results) -> String {
    let groups = results.groups();
    let mut text = String::new();
    for (position, group) in groups.iter().enumerate() {
        let case = &group[0].case;
        let same_mode = |other: &Vec<&CaseResult>| {
            other[0].case.mode == case.mode && other[0].case.area == case.area
        };
        if groups[..position].iter().any(same_mode) {
            continue;
        }
        text += &format!("### {} Results\n\n", case.mode.title());
        if case.mode.name == "request-reply" {
            text += "Request-reply prioritizes latency statistics. The configured rate is retained as \
                load context, but the primary reported metrics are mean, p50, and p99 latency.\n\n";
        }
        let targets: Vec<_> = groups.iter().filter(|group| same_mode(group)).collect();
        for group in &targets {
            if targets.len() > 1 {
                text += &format!("#### Target {}\n\n", group[0].case.target);
            }
            text += &mode(group);
        }
    }
    text
}

/// Renders the tables of one mode and target, with the flags below them.
fn mode(cases: &[&CaseResult]) -> String {
    let mut text = String::new();
    if cases[0].case.mode.answered {
        text += &format!("{}\n", latency(cases).markdown());
    }
    // A closed loop has its own throughput; a paced exchange has the schedule's.
    if !cases[0].case.mode.answered || cases.iter().any(|one| !one.case.paced()) {
        text += &format!("{}\n", throughput(cases).markdown());
    }
    let flagged: String = cases
        .iter()
        .filter(|one| !one.summary.flags.is_empty())
        .map(|one| {
            format!(
                "- {}: {}\n",
                one.case.description(),
                flags::sentence(&one.summary.flags)
            )
        })
        .collect();
    if flagged.is_empty() {
        text
    } else {
        text + &format!("Flags:\n\n{flagged}\n")
    }
}

/// Builds the request-reply table (18 columns).
fn latency(cases: &[&CaseResult]) -> Table {
    let mut heads = FIRST.to_vec();
    heads.extend([
        "Mean Latency ms",
        "Mean Latency Variance",
        "Mean Latency 95% CI",
        "P50 Latency ms",
        "P50 Latency 95% CI",
        "P99 Latency ms",
        "P99 Latency 95% CI",
        "Sender Mean CPU %",
        "Sender CPU 95% CI",
        "Node Mean CPU %",
        "Node CPU 95% CI",
        "Total Mean CPU %",
        "Total CPU 95% CI",
        "Total Errors",
    ]);
    let mut table = Table::new(heads, 0);
    for case in cases {
        let mut cells = first(case);
        let decimals = latency_decimals(case);
        cells.extend(mean_variance_interval(case, Metric::LatencyMean, decimals));
        for metric in [Metric::LatencyP50, Metric::LatencyP99] {
            cells.extend(mean_interval(case, metric, decimals));
        }
        for metric in [Metric::SenderCpu, Metric::NodeCpu, Metric::TotalCpu] {
            cells.extend(mean_interval(case, metric, 2));
        }
        cells.push(errors(case));
        table.row(cells.into_iter().map(Some));
    }
    table
}

/// Builds the table of a one-way mode (21 columns).
fn throughput(cases: &[&CaseResult]) -> Table {
    let observed = match (
        cases[0].case.mode.counted_by,
        cases[0].case.mode.name.as_ref(),
    ) {
        (CountedBy::Sink, _) => "Observed Node Throughput",
        (CountedBy::Sender, "write") => "Sender Write Throughput",
        (CountedBy::Sender, _) => "Sender Completed Throughput",
    };
    let mut heads: Vec<String> = FIRST.map(String::from).to_vec();
    heads.extend(["Sender Mean msg/sec", "Sender Variance", "Sender 95% CI"].map(String::from));
    heads.extend(["Mean msg/sec", "Variance", "95% CI"].map(|word| format!("{observed} {word}")));
    for role in ["Sender", "Responder", "Node", "Total"] {
        heads.extend([format!("{role} Mean CPU %"), format!("{role} CPU 95% CI")]);
    }
    heads.extend(["Mean Sender Msgs", "Mean Observed Msgs", "Total Errors"].map(String::from));
    let mut table = Table::new(heads, 0);
    for case in cases {
        let mut cells = first(case);
        cells.extend(mean_variance_interval(case, Metric::SenderRate, 2));
        cells.extend(mean_variance_interval(case, Metric::ObservedRate, 2));
        for metric in [
            Metric::SenderCpu,
            Metric::ResponderCpu,
            Metric::NodeCpu,
            Metric::TotalCpu,
        ] {
            cells.extend(mean_interval(case, metric, 2));
        }
        cells.push(fixed(case.summary.mean(Metric::SenderMessages)));
        cells.push(fixed(case.summary.mean(Metric::ObservedMessages)));
        cells.push(errors(case));
        table.row(cells.into_iter().map(Some));
    }
    table
}

const FIRST: [&str; 4] = ["Clients", "Payload", "Rate", "Repeats"];

fn first(result: &CaseResult) -> Vec<String> {
    let case = &result.case;
    vec![
        case.clients.to_string(),
        format!("{}B", case.size),
        case.rate.to_string(),
        result.summary.runs.to_string(),
    ]
}

/// Decimals of a latency: two as in the suite, four below 0.1 ms, where two would round to nothing.
fn latency_decimals(result: &CaseResult) -> usize {
    let small = result
        .summary
        .mean(Metric::LatencyMean)
        .is_some_and(|mean_ms| mean_ms < 0.1);
    if small { 4 } else { 2 }
}

fn mean_interval(result: &CaseResult, metric: Metric, decimals: usize) -> [String; 2] {
    let described = result.summary.get(metric);
    let interval = described.and_then(|one| one.interval);
    [
        decimal(described.map(|one| one.mean), decimals),
        interval_decimal(interval, decimals),
    ]
}

fn mean_variance_interval(result: &CaseResult, metric: Metric, decimals: usize) -> [String; 3] {
    let variance = result.summary.get(metric).and_then(|one| one.variance);
    let [mean, interval] = mean_interval(result, metric, decimals);
    [mean, decimal(variance, decimals), interval]
}

/// Errors of all runs. Absent when no run counted them.
fn errors(result: &CaseResult) -> String {
    let counted = result.summary.get(Metric::SenderErrors).is_some();
    let total = result.runs.iter().map(Run::error_count).sum::<u64>();
    count(counted.then_some(total as f64))
}

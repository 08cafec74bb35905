//! Call modes side by side in the form of the UVRPC report: every run, averages, speed-ups. Added
//! to that report: intervals, and a verdict for each speed-up.

mod configuration;

use super::Table;
use crate::flags;
use crate::format::{human, thousands};
use crate::model::{CaseComparison, CaseResult, Metric, Results, Run, Unit};

/// Renders the report over every series of call modes in the results.
#[must_use]
pub fn uvrpc(results: &Results) -> String {
    let mut text = String::from("# Telpher RPC Performance Test Results\n\n");
    text += &configuration::configuration(results);
    text += &methodology(results);
    let series = series(results);
    for (name, cases) in &series {
        if series.len() > 1 {
            text += &format!("# {name}\n\n");
        }
        text += &runs(cases);
        text += &averages(cases);
        text += &latency(cases);
        text += &variability(cases);
    }
    if series.is_empty() {
        text += "No unpaced call modes were run.\n";
    }
    text
}

fn methodology(results: &Results) -> String {
    let order = if results.interleaved() {
        "The modes of a repeat took turns, so that drift of the machine reaches all of them"
    } else {
        "All runs of a mode ran one after the other, before those of the next mode"
    };
    format!(
        "## Test Methodology\n\n\
         1. Connecting and warming up come before the measured window\n\
         2. {order}\n\
         3. A run's throughput is its completed calls divided by its window, both read from one clock\n\
         4. Averages are over runs; speed-ups are ratios of averages with a 95 % interval (Fieller, \
         Welch–Satterthwaite degrees of freedom), and a speed-up whose interval includes 1 is called no \
         difference shown\n\n"
    )
}

fn series(results: &Results) -> Vec<(String, Vec<&CaseResult>)> {
    let mut found: Vec<(String, String, Vec<&CaseResult>)> = Vec::new();
    for result in &results.cases {
        let Some(key) = result.case.series() else {
            continue;
        };
        match found.iter_mut().find(|(other, ..)| *other == key) {
            Some((.., cases)) => cases.push(result),
            None => {
                let case = &result.case;
                let parameters: String = case
                    .parameters
                    .iter()
                    .map(|(key, value)| format!(", {key} {value}"))
                    .collect();
                let name = format!("{}, {} bytes{parameters}", case.target, case.size);
                found.push((key, name, vec![result]));
            }
        }
    }
    found
        .into_iter()
        .map(|(_, name, cases)| (name, cases))
        .collect()
}

fn runs(cases: &[&CaseResult]) -> String {
    let count = cases.iter().map(|case| case.runs.len()).max().unwrap_or(0);
    let heads = cases
        .iter()
        .map(|case| format!("{} (ops/s)", column(case, cases)));
    let mut table = Table::new(std::iter::once("Run".to_owned()).chain(heads), 1);
    for run in 0..count {
        let rate = |case: &&CaseResult| ops(rate_of(case.runs.get(run)?));
        table.row(std::iter::once(Some((run + 1).to_string())).chain(cases.iter().map(rate)));
    }
    format!(
        "## Test Results ({count} Runs)\n\n{}\n{}",
        table.markdown(),
        flagged(cases)
    )
}

fn rate_of(run: &Run) -> Option<f64> {
    run.metrics.get(Metric::ObservedRate)
}

fn averages(cases: &[&CaseResult]) -> String {
    let Some(baseline) = cases.first() else {
        return String::new();
    };
    let speedup = format!("Speedup vs {}", mode_title(baseline));
    let heads = [
        "Mode",
        "Average Throughput (ops/s)",
        "Throughput 95% CI",
        &speedup,
        "Speedup 95% CI",
        "Verdict",
    ];
    let mut table = Table::new(heads, 1);
    for case in cases {
        let rate = case.summary.get(Metric::ObservedRate);
        let interval = rate.and_then(|rate| rate.interval);
        let mut cells = vec![
            Some(column(case, cases)),
            rate.and_then(|rate| ops(Some(rate.mean))),
            interval.map(|i| format!("[{}, {}]", thousands(i.low, 2), thousands(i.high, 2))),
        ];
        if std::ptr::eq(*case, *baseline) {
            cells.extend(["1.0x (baseline)", "-", "-"].map(|text| Some(text.to_owned())));
        } else {
            cells.extend(ratio(case, baseline));
        }
        table.row(cells);
    }
    format!(
        "## Average Performance\n\n{}\n{}",
        table.markdown(),
        flagged(cases)
    )
}

/// Returns ratio, interval and verdict.
fn ratio(subject: &CaseResult, baseline: &CaseResult) -> [Option<String>; 3] {
    let found = CaseComparison::of(Metric::ObservedRate, subject, baseline);
    let Some(CaseComparison { comparison, .. }) = found else {
        return [None, None, None];
    };
    [
        comparison.ratio.map(|ratio| format!("{ratio:.1}x")),
        comparison
            .interval
            .map(|i| format!("[{:.1}x, {:.1}x]", i.low, i.high)),
        Some(comparison.verdict.description().to_owned()),
    ]
}

fn latency(cases: &[&CaseResult]) -> String {
    let heads = ["Mode", "Mean", "p50", "p99", "p99.9", "Max", "Calls"];
    let mut table = Table::new(heads, 1);
    for case in cases {
        let Some(pooled) = case.summary.pooled.service else {
            continue;
        };
        let time = |ns: f64| Some(human(ns / 1e6, Unit::Millis));
        table.row([
            Some(column(case, cases)),
            time(pooled.mean_ns),
            time(pooled.p50_ns as f64),
            time(pooled.p99_ns as f64),
            time(pooled.p999_ns as f64),
            time(pooled.max_ns as f64),
            Some(thousands(pooled.count as f64, 0)),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    format!(
        "## Latency\n\nOver the calls of all runs together (pooled).\n\n{}\n",
        table.markdown()
    )
}

fn variability(cases: &[&CaseResult]) -> String {
    let heads = [
        "Mode",
        "Runs",
        "Min (ops/s)",
        "Max (ops/s)",
        "Std dev (ops/s)",
        "CV",
        "Flags",
    ];
    let mut table = Table::new(heads, 1);
    for case in cases {
        let rate = case.summary.get(Metric::ObservedRate);
        table.row([
            Some(column(case, cases)),
            Some(case.summary.runs.to_string()),
            ops(rate.map(|rate| rate.min)),
            ops(rate.map(|rate| rate.max)),
            ops(rate.and_then(|rate| rate.deviation)),
            rate.and_then(|rate| Some(format!("{:.1} %", 100.0 * rate.variation?))),
            Some(flags::list(&case.summary.flags)),
        ]);
    }
    let mut text = format!("## Performance Variability\n\n{}\n", table.markdown());
    for (position, subject) in cases.iter().enumerate().skip(1) {
        for baseline in &cases[..position] {
            if let [Some(ratio), Some(interval), Some(verdict)] = ratio(subject, baseline) {
                let (ours, theirs) = (column(subject, cases), column(baseline, cases));
                text += &format!("- {ours} against {theirs}: {ratio} {interval}, {verdict}\n");
            }
        }
    }
    text + "\n"
}

/// Lists the flags of these cases, under their table.
fn flagged(cases: &[&CaseResult]) -> String {
    let mut text = String::new();
    for case in cases.iter().filter(|case| !case.summary.flags.is_empty()) {
        text += &format!(
            "- {}: {}\n",
            column(case, cases),
            flags::sentence(&case.summary.flags)
        );
    }
    if text.is_empty() {
        text
    } else {
        format!("Flags:\n\n{text}\n")
    }
}

fn ops(rate: Option<f64>) -> Option<String> {
    rate.map(|rate| thousands(rate, 2))
}

/// Names a column: the mode as in the UVRPC report, with its depth if two columns would have the
/// same name.
fn column(case: &CaseResult, all: &[&CaseResult]) -> String {
    let same = all
        .iter()
        .filter(|other| other.case.mode == case.case.mode)
        .count();
    match case.case.in_flight {
        Some(depth) if same > 1 => format!("{}, {depth} in flight", label(case)),
        _ => label(case),
    }
}

fn label(case: &CaseResult) -> String {
    match case.case.mode.name.as_ref() {
        "serial" => "Serial Await".to_owned(),
        "blocking" => "Serial Blocking".to_owned(),
        "concurrent" => "Concurrent Await".to_owned(),
        "callback" => "Callback Mode".to_owned(),
        _ => case.case.mode.title(),
    }
}

fn mode_title(case: &CaseResult) -> String {
    case.case.mode.title()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uvrpc_report_matches_the_snapshot() {
        insta::assert_snapshot!(uvrpc(&crate::fixture::results()));
    }

    #[test]
    fn uvrpc_report_without_calls_says_so() {
        let mut results = crate::fixture::results();
        results
            .cases
            .retain(|result| result.case.series().is_none());
        assert!(uvrpc(&results).contains("No unpaced call modes were run."));
    }
}

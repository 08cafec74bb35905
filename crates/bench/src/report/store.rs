//! Conversations in the form of FleetLM's report: date, commit, set-up, throughput, CPU, memory.
//! Added to that report: latencies, syncs, intervals, and the same load on rival systems.

use super::Table;
use super::common::{methodology, of};
use crate::format::{bytes, figures, human};
use crate::model::{Area, CaseResult, Metric, Results};
use crate::stats::{Description, Interval, describe};
use crate::workload::surroundings::OURS;

/// FleetLM's published row of 2025-10-17 (`docs/bench.md` in its repository).
const PUBLISHED: [&str; 7] = [
    "2025-10-17",
    "`650292e`",
    "FleetLM as published: 1 node, c5d.large",
    "~800 msg/s",
    "40 %",
    "130 MB",
    "durable writes, NVMe WAL; one run, latency not published",
];

/// Messages per second that FleetLM published.
const PUBLISHED_RATE: f64 = 800.0;

/// Renders the report.
#[must_use]
pub fn fleetlm(results: &Results) -> String {
    let current = current(results);
    if current.is_empty() {
        return "No conversations were measured.\n".to_owned();
    }
    let mut text = format!("# Benchmarks\n\n{current}");
    text += "\n## Methodology\n\n\
        Every acknowledgement counted means that the message is on disk: it is sent after the sync that covers it.\n\n";
    text + &methodology(results)
}

/// Renders only the tables. Empty when no conversations were measured.
pub(super) fn current(results: &Results) -> String {
    let cases: Vec<_> = of(results, Area::Store).collect();
    if cases.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## Current Results\n\n{}\n",
        rows(results, &cases).markdown()
    );
    text += &format!("## Acknowledgements\n\n{}", latencies(&cases).markdown());
    for sentence in sentences(&cases) {
        text += &format!("\n- {sentence}");
    }
    text + "\n"
}

fn rows(results: &Results, cases: &[&CaseResult]) -> Table {
    let heads = [
        "Date",
        "Commit",
        "Setup",
        "Throughput",
        "CPU",
        "Memory",
        "Notes",
    ];
    let mut table = Table::new(heads, 3);
    table.row(PUBLISHED.map(|cell| Some(cell.to_owned())));
    let date = results.generated.split(' ').next().map(str::to_owned);
    let machine = &results.environment;
    let cpus = machine
        .cpu_count
        .map_or_else(String::new, |count| format!(", {count} CPUs"));
    let model = machine.cpu_model.clone().unwrap_or_default();
    for one in cases {
        let is_ours = one.case.target == OURS;
        let commit = machine.commit.as_ref().filter(|_| is_ours);
        let rate = one.summary.get(Metric::ObservedRate);
        table.row([
            date.clone(),
            commit.map(|commit| format!("`{commit}`")),
            Some(format!("{}: {model}{cpus}", name(one))),
            rate.map(|rate| format!("{} msg/s", figures(rate.mean))),
            one.summary
                .mean(Metric::NodeCpu)
                .map(|cpu| human(cpu, Metric::NodeCpu.unit())),
            one.summary
                .get(Metric::NodeRssPeak)
                .map(|peak| bytes(peak.max as u64)),
            notes(one),
        ]);
    }
    table
}

/// Notes of a row: number of runs, interval of the rate, and growth of memory in the second half of
/// the runs.
fn notes(one: &CaseResult) -> Option<String> {
    let runs = match one.summary.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let rate = one
        .summary
        .get(Metric::ObservedRate)
        .and_then(|rate| rate.interval);
    let interval = rate.map(|rate| format!("{} – {} msg/s", figures(rate.low), figures(rate.high)));
    let drift = drift(one).map(|drift| format!("memory {drift} in the second half"));
    let words: Vec<String> = [Some(runs), interval, drift]
        .into_iter()
        .flatten()
        .collect();
    Some(words.join("; "))
}

/// Mean growth of memory from the middle of a run to its end.
fn drift(one: &CaseResult) -> Option<String> {
    let grown = |run: &crate::model::Run| {
        let points = &run.measured.as_ref()?.memory;
        let (middle, last) = (points.get(points.len() / 2)?, points.last()?);
        Some(last.rss_bytes as f64 - middle.rss_bytes as f64)
    };
    let grown: Vec<f64> = one.runs.iter().filter_map(grown).collect();
    let mean = describe(&grown)?.mean;
    let sign = if mean < 0.0 { "−" } else { "+" };
    Some(format!("{sign}{}", bytes(mean.abs() as u64)))
}

/// Names a row: the target with its client API, or with its connections and depth.
fn name(one: &CaseResult) -> String {
    let case = &one.case;
    match case.parameters.get("door") {
        Some(door) => format!("{} over {door}", case.target),
        None => format!(
            "{}, {} × {}",
            case.target,
            case.clients,
            case.in_flight.unwrap_or(1)
        ),
    }
}

fn latencies(cases: &[&CaseResult]) -> Table {
    let heads = [
        "Target",
        "p50",
        "p99",
        "p99.9",
        "Server CPU per message",
        "Syncs/s",
        "Messages per sync",
        "Errors",
    ];
    let mut table = Table::new(heads, 1);
    for one in cases {
        let mean = |metric: Metric| Some(human(one.summary.mean(metric)?, metric.unit()));
        table.row([
            Some(name(one)),
            mean(Metric::LatencyP50),
            mean(Metric::LatencyP99),
            mean(Metric::LatencyP999),
            mean(Metric::NodeCpuPerMessage),
            mean(Metric::SyncRate),
            one.summary.mean(Metric::MessagesPerSync).map(figures),
            one.summary.mean(Metric::SenderErrors).map(figures),
        ]);
    }
    table
}

/// Conclusions about each row of ours: the ratio to the published rate and to the floors.
fn sentences(cases: &[&CaseResult]) -> Vec<String> {
    let ours = cases.iter().filter(|one| one.case.target == OURS);
    let mut sentences = Vec::new();
    for one in ours {
        if let Some(rate) = one.summary.mean(Metric::ObservedRate) {
            let times = figures(rate / PUBLISHED_RATE);
            sentences.push(format!(
                "{}: {times} × the rate that FleetLM published.",
                name(one)
            ));
        }
        if let Some(sum) = over_sum_of_floors(one, cases) {
            let interval = sum.interval.map_or_else(String::new, |interval| {
                format!(
                    " (95 % interval {} – {})",
                    figures(interval.low),
                    figures(interval.high)
                )
            });
            sentences.push(format!(
                "{}: with one message at a time, its ack at p50 takes {} × the sum of a raw sync and a raw round \
                 trip{interval}.",
                name(one),
                figures(sum.mean)
            ));
        }
    }
    sentences
}

/// With one message at a time: p50 over the sum of the floors' p50, repeat by repeat, because cases
/// of one repeat ran side by side.
fn over_sum_of_floors(one: &CaseResult, cases: &[&CaseResult]) -> Option<Description> {
    let is_alone = |one: &CaseResult| (one.case.clients, one.case.in_flight) == (1, Some(1));
    let floor = |target: &str| {
        cases
            .iter()
            .find(|other| other.case.target == target && is_alone(other))
    };
    let (disk, echo) = (floor("disk-floor")?, floor("floor")?);
    if !is_alone(one) {
        return None;
    }
    let p50 =
        |result: &CaseResult, run: usize| result.runs.get(run)?.metrics.get(Metric::LatencyP50);
    let ratio = |run: usize| Some(p50(one, run)? / (p50(disk, run)? + p50(echo, run)?));
    let ratios: Vec<f64> = (0..one.runs.len()).filter_map(ratio).collect();
    let mut found = describe(&ratios)?;
    found.interval = found.interval.map(Interval::from_zero);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::MemoryPoint;
    use crate::model::{Case, Environment, Metrics, Mode, Run, SCHEMA_VERSION, Setup};

    fn result(case: Case, figures: &[(Metric, [f64; 2])]) -> CaseResult {
        let run = |repeat: usize| {
            let mut metrics = Metrics::new();
            for (metric, values) in figures {
                metrics.set(*metric, values[repeat]);
            }
            Run::reported(repeat as u32 + 1, repeat as u32 + 1, metrics)
        };
        CaseResult::of(case, vec![run(0), run(1)])
    }

    fn case(target: &str) -> Case {
        Case::new(target, Area::Store, Mode::SERIAL)
            .in_flight(1)
            .size(256)
    }

    fn results(cases: Vec<CaseResult>) -> Results {
        Results {
            schema_version: SCHEMA_VERSION,
            name: "store".to_owned(),
            generated: "2026-06-26 08:01:47".to_owned(),
            environment: Environment {
                commit: Some("abc123".to_owned()),
                ..Environment::default()
            },
            setup: Setup {
                notes: vec![("Load".to_owned(), "as said".to_owned())],
                ..Setup::default()
            },
            cases,
            comparisons: Vec::new(),
            sweeps: Vec::new(),
        }
    }

    fn measured() -> Results {
        let ours = case(OURS).parameter("door", "native");
        let figures = [
            (Metric::ObservedRate, [8_000.0, 8_800.0]),
            (Metric::LatencyP50, [0.12, 0.12]),
            (Metric::NodeCpuPerMessage, [11.0, 13.0]),
            (Metric::MessagesPerSync, [7.5, 8.5]),
        ];
        let mut ours = result(ours, &figures);
        let memory = [10 << 20, 20 << 20, 20 << 20, 21 << 20].map(|rss_bytes| MemoryPoint {
            at_ms: 0,
            rss_bytes,
        });
        ours.runs[0].measured = Some(crate::measurement::Measurement {
            memory: memory.to_vec(),
            ..Default::default()
        });
        let disk = result(case("disk-floor"), &[(Metric::LatencyP50, [0.06, 0.08])]);
        let echo = result(case("floor"), &[(Metric::LatencyP50, [0.02, 0.02])]);
        results(vec![ours, disk, echo])
    }

    #[test]
    fn rows_include_that_of_the_published_report() {
        let text = fleetlm(&measured());
        for expected in [
            "| 2025-10-17 | `650292e` | FleetLM as published",
            "| 2026-06-26 | `abc123` | telpher over native",
            "8,400 msg/s",
            "memory +1.0 MiB in the second half",
            "- telpher over native: 10.5 × the rate that FleetLM published.",
            "- Load: as said\n",
        ] {
            assert!(text.contains(expected), "{expected} is missing:\n{text}");
        }
        assert!(
            !text.contains("`abc123` | disk-floor"),
            "a floor has no commit of ours:\n{text}"
        );
    }

    #[test]
    fn serial_append_latency_is_compared_with_the_sum_of_floors() {
        let results = measured();
        let cases: Vec<&CaseResult> = results.cases.iter().collect();
        let sum = over_sum_of_floors(cases[0], &cases).unwrap();
        assert!((sum.mean - f64::midpoint(1.5, 1.2)).abs() < 1e-9, "{sum:?}");
        assert_eq!(over_sum_of_floors(cases[0], &cases[..2]), None);
        let text = fleetlm(&results);
        assert!(
            text.contains("takes 1.35 × the sum of a raw sync"),
            "{text}"
        );
    }

    #[test]
    fn results_without_conversations_have_no_such_table() {
        assert_eq!(current(&crate::fixture::results()), "");
    }
}

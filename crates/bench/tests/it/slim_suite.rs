//! The SLIM suite's smoke report: its 75 live lines, and the tables that it made of them.
//!
//! The lines carry two decimals, so each value may be off by 0.005. A mean can move by as much, an
//! end of an interval by 0.0071 (t · 0.005 / √24 more), a variance by about 2 · s · 0.005 (0.11 for
//! the largest here). None of this shows: every cell derived from the lines equals the printed
//! digits, so the comparison is of text, without tolerance.
//!
//! Sender CPU, responder CPU and the mean numbers of messages are not in the lines, so they cannot
//! be recomputed. They are the only cells that are `n/a` in our report.

use bench::lines;
use bench::model::{CaseResult, Environment, Metric, Results, Run, SCHEMA_VERSION, Setup};
use bench::report;

const REPORT: &str = include_str!("../data/slim-suite.md");

fn results() -> Results {
    let mut cases: Vec<(bench::model::Case, Vec<Run>)> = Vec::new();
    for line in REPORT.lines() {
        let Some((case, run)) = lines::parse_result(line, "slim") else {
            continue;
        };
        match cases.iter_mut().find(|(other, _)| *other == case) {
            Some((_, runs)) => runs.push(run),
            None => cases.push((case, vec![run])),
        }
    }
    Results {
        schema_version: SCHEMA_VERSION,
        name: "slim-suite".to_owned(),
        generated: "2026-06-26 08:01:47".to_owned(),
        environment: Environment::default(),
        setup: Setup::default(),
        cases: cases
            .into_iter()
            .map(|(case, runs)| CaseResult::of(case, runs))
            .collect(),
        comparisons: Vec::new(),
        sweeps: Vec::new(),
    }
}

/// Returns the head and the row of the table under a heading.
fn table<'a>(document: &'a str, heading: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let section = document
        .split(heading)
        .nth(1)
        .unwrap_or_else(|| panic!("no {heading}"));
    let mut rows = section.lines().filter(|line| line.starts_with("| "));
    let mut cells = || {
        let row = rows.next().expect("a row");
        row.trim_matches('|').split('|').map(str::trim).collect()
    };
    let head = cells();
    let marks: Vec<&str> = cells();
    assert!(marks.iter().all(|mark| *mark == ":---"));
    (head, cells())
}

#[test]
fn slim_suite_report_parses_to_75_runs() {
    let results = results();
    let runs: Vec<_> = results
        .cases
        .iter()
        .map(|result| result.runs.len())
        .collect();
    assert_eq!(runs, [25, 25, 25]);
    assert_eq!(REPORT.matches("BENCHMARK_RESULT ").count(), 75);
}

#[test]
fn every_derived_cell_is_recomputed_to_the_printed_digit() {
    let ours = report::suite_summary(&results());
    let absent = [
        "Sender Mean CPU %",
        "Sender CPU 95% CI",
        "Responder Mean CPU %",
        "Responder CPU 95% CI",
        "Mean Sender Msgs",
        "Mean Observed Msgs",
    ];
    let mut compared = 0;
    for heading in [
        "### Request-Reply Results",
        "### Fire-And-Forget Results",
        "### Write Results",
    ] {
        let (heads, expected) = table(REPORT, heading);
        let (our_heads, actual) = table(&ours, heading);
        assert_eq!(our_heads, heads, "{heading}");
        for ((head, expected), actual) in heads.iter().zip(expected).zip(actual) {
            if absent.contains(head) {
                assert_eq!(actual, "n/a", "{heading}: {head}");
            } else {
                assert_eq!(actual, expected, "{heading}: {head}");
                compared += 1;
            }
        }
    }
    // 18 columns without 2, and twice 21 without 6.
    assert_eq!(compared, 16 + 15 + 15);
}

#[test]
fn the_mode_summaries_are_recomputed_to_the_printed_digit() {
    let results = results();
    let expected = REPORT
        .lines()
        .filter(|line| line.starts_with("MODE_SUMMARY"));
    let groups = results.groups();
    assert_eq!(groups.len(), 3);
    for (cases, expected) in groups.iter().zip(expected) {
        let ours = lines::mode_summary(cases).unwrap();
        assert!(ours.starts_with(expected), "{ours}\n{expected}");
    }
}

#[test]
fn result_lines_begin_with_those_of_the_slim_suite() {
    let results = results();
    let theirs = REPORT
        .lines()
        .filter(|line| line.starts_with("BENCHMARK_RESULT"));
    let runs = results
        .cases
        .iter()
        .flat_map(|one| one.runs.iter().map(|run| (&one.case, run)));
    for ((case, run), expected) in runs.zip(theirs) {
        let ours = lines::benchmark_result(case, run);
        assert!(
            ours.starts_with(&format!("{expected} target=slim area=agent")),
            "{ours}"
        );
    }
}

#[test]
fn interval_uses_students_t_instead_of_the_normal_distribution() {
    // With z instead of t, the sender's interval would be [927.64, 934.48].
    let results = results();
    let sends = results.cases[1].summary.get(Metric::SenderRate).unwrap();
    let interval = sends.interval.unwrap();
    assert_eq!(
        format!("{:.2} {:.2}", interval.low, interval.high),
        "927.46 934.66"
    );
}

#[test]
fn a_page_is_built_from_runs_with_only_result_lines() {
    let page = report::page(&results());
    assert!(page.contains("3 cases in 75 runs"));
    assert!(page.contains("fire-and-forget · 1 client · 16 B · 1,000/s"));
}

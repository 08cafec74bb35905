//! The UVRPC report: five runs of three call modes, their averages and speed-ups.
//!
//! The rates carry two decimals and are six digits long, so averages come out to the printed digit.
//! The intervals, which the report does not have, show that its "12x" is anything between 4 and 20.

use bench::model::{
    Area, Case, CaseResult, Environment, Metric, Metrics, Mode, Results, Run, SCHEMA_VERSION, Setup,
};
use bench::report;
use bench::stats::{Better, Verdict, compare};

const REPORT: &str = include_str!("../data/uvrpc.md");

fn results() -> Results {
    let modes = [
        (Mode::SERIAL, 1),
        (Mode::CONCURRENT, 10),
        (Mode::CALLBACK, 10),
    ];
    let mut runs: [Vec<Run>; 3] = Default::default();
    for line in REPORT.lines() {
        let cells: Vec<_> = line
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim())
            .collect();
        let Ok(repeat) = cells[0].parse::<u32>() else {
            continue;
        };
        for (runs, cell) in runs.iter_mut().zip(&cells[1..]) {
            let mut metrics = Metrics::new();
            let rate: f64 = cell.replace(',', "").parse().expect("a rate");
            metrics.set(Metric::ObservedRate, rate);
            runs.push(Run::reported(repeat, repeat, metrics));
        }
    }
    let cases = modes.into_iter().zip(runs).map(|((mode, depth), runs)| {
        let case = Case::new("uvrpc", Area::Rpc, mode)
            .size(128)
            .in_flight(depth);
        CaseResult::of(case, runs)
    });
    let mut results = Results {
        schema_version: SCHEMA_VERSION,
        name: "uvrpc".to_owned(),
        generated: "2026-02-11 00:00:00".to_owned(),
        environment: Environment::default(),
        setup: Setup::default(),
        cases: cases.collect(),
        comparisons: Vec::new(),
        sweeps: Vec::new(),
    };
    results.compare();
    results
}

/// Returns the cells of the row that begins with `first`, below a heading.
fn row<'a>(document: &'a str, heading: &str, first: &str) -> Vec<&'a str> {
    let section = document.split(heading).nth(1).expect("the heading");
    let cells = |line: &'a str| {
        line.trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect::<Vec<_>>()
    };
    section
        .lines()
        .map(cells)
        .find(|cells| cells[0] == first)
        .expect("the row")
}

#[test]
fn averages_and_speed_ups_match_to_the_printed_digit() {
    let ours = report::uvrpc(&results());
    for run in ["1", "2", "3", "4", "5"] {
        let heading = "## Test Results (5 Runs)";
        assert_eq!(row(&ours, heading, run), row(REPORT, heading, run));
    }
    for mode in ["Serial Await", "Concurrent Await", "Callback Mode"] {
        let expected = row(REPORT, "## Average Performance", mode);
        let actual = row(&ours, "## Average Performance", mode);
        assert_eq!(actual[1], expected[1], "average of {mode}");
        assert_eq!(actual[3], expected[2], "speed-up of {mode}");
    }
}

#[test]
fn the_spread_between_runs_is_computed_for_imported_results() {
    let results = results();
    let spread = |position: usize| {
        let rate = results.cases[position]
            .summary
            .get(Metric::ObservedRate)
            .unwrap();
        let interval = rate.interval.unwrap();
        let variation = 100.0 * rate.variation.unwrap();
        format!(
            "{variation:.0} % [{:.0}, {:.0}]",
            interval.low, interval.high
        )
    };
    assert!(spread(0).starts_with("4 % "), "{}", spread(0));
    assert_eq!(spread(1), "47 % [32316, 124246]");
    assert_eq!(spread(2), "53 % [50859, 243620]");
}

#[test]
fn callback_beats_serial_but_not_significantly_concurrent() {
    let results = results();
    let rate = |position: usize| {
        results.cases[position]
            .summary
            .get(Metric::ObservedRate)
            .unwrap()
    };
    let against = |subject, baseline| compare(rate(subject), rate(baseline), Better::Higher);
    assert_eq!(against(1, 0).verdict, Verdict::Faster);
    assert_eq!(against(2, 0).verdict, Verdict::Faster);
    assert_eq!(against(2, 1).verdict, Verdict::NoDifferenceShown);
    let interval = against(2, 0).interval.unwrap();
    assert!(interval.low < 5.0 && interval.high > 19.0, "{interval:?}");
    let ours = report::uvrpc(&results);
    assert!(
        ours.contains("Callback Mode against Concurrent Await: 1.9x"),
        "{ours}"
    );
}

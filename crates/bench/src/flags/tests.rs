use crate::model::{Area, CaseResult, Mode};
use crate::process::{HostLoad, Role, RoleUsage, Usage};
use meter::histogram::Histogram;

use super::*;

fn histogram(count: u64, ns: u64) -> Histogram {
    let mut histogram = Histogram::new();
    (0..count).for_each(|_| histogram.record(ns));
    histogram
}

/// 10,000 messages in 2 s, 1 in flight, 200 µs each: no flag applies.
fn unflagged() -> (Case, Measurement) {
    let case = Case::new("telpher", Area::Rpc, Mode::SERIAL).in_flight(1);
    let measured = Measurement {
        sent: 10_000,
        completed: 10_000,
        window_ns: 2_000_000_000,
        service: Some(histogram(10_000, 200_000)),
        usage: Some(Usage {
            roles: vec![RoleUsage {
                role: Role::Sender,
                name: "sender".into(),
                cpu_ns: Some(1_000_000_000),
                wall_ns: 2_000_000_000,
                cpu_step_ns: 100,
                rss_bytes: None,
                rss_peak_bytes: None,
            }],
            host: Some(HostLoad {
                steal_percent: 2.0,
                foreign_percent: 20.0,
            }),
        }),
        ..Measurement::default()
    };
    (case, measured)
}

#[track_caller]
fn check(change: impl FnOnce(&mut Case, &mut Measurement), expected: &[Flag]) {
    let (mut case, mut measured) = unflagged();
    change(&mut case, &mut measured);
    let run = Run::of(&case, 1, 1, measured);
    let flags: Vec<_> = run.flags.iter().map(|raised| raised.flag).collect();
    assert_eq!(flags, expected, "{:?}", run.flags);
}

fn sender(measured: &mut Measurement) -> &mut RoleUsage {
    &mut measured.usage.as_mut().unwrap().roles[0]
}

fn host(measured: &mut Measurement) -> &mut HostLoad {
    measured.usage.as_mut().unwrap().host.as_mut().unwrap()
}

#[test]
fn valid_run_has_no_flags() {
    check(|_, _| {}, &[]);
}

#[test]
fn pacing_limits_from_98_percent_of_the_offer_on() {
    check(|case, _| case.rate = 5_000, &[Flag::PacingLimited]);
    check(|case, _| case.rate = 5_102, &[Flag::PacingLimited]);
    check(|case, _| case.rate = 5_103, &[]);
}

#[test]
fn a_run_is_too_short_below_a_second_or_a_thousand_messages() {
    let shorten = |window_ns: u64, completed: u64| {
        move |_: &mut Case, measured: &mut Measurement| {
            measured.window_ns = window_ns;
            measured.completed = completed;
            // Little's law still holds, so that only the length matters.
            measured.service = Some(histogram(completed, window_ns / completed));
        }
    };
    check(shorten(1_000_000_000, 1_000), &[]);
    check(shorten(999_999_999, 1_000), &[Flag::TooShort]);
    check(shorten(1_000_000_000, 999), &[Flag::TooShort]);
}

#[test]
fn generator_is_flagged_above_90_percent_cpu_or_1_ms_lag() {
    check(
        |_, measured| sender(measured).cpu_ns = Some(1_800_000_000),
        &[],
    );
    check(
        |_, measured| sender(measured).cpu_ns = Some(1_800_000_001),
        &[Flag::GeneratorLimited],
    );
    check(
        |_, measured| measured.lag = Some(histogram(100, 999_000)),
        &[],
    );
    check(
        |_, measured| measured.lag = Some(histogram(100, 1_002_000)),
        &[Flag::GeneratorLimited],
    );
}

#[test]
fn littles_law_is_checked_in_closed_loops_only() {
    check(|case, _| case.in_flight = Some(2), &[Flag::LittleMismatch]);
    check(
        |_, measured| measured.service = Some(histogram(10_000, 192_000)),
        &[],
    );
    check(
        |_, measured| measured.service = Some(histogram(10_000, 188_000)),
        &[Flag::LittleMismatch],
    );
    check(|case, _| case.in_flight = None, &[]);
    check(
        |case, _| (case.in_flight, case.rate) = (Some(2), 1_000_000),
        &[],
    );
}

#[test]
fn a_host_is_noisy_above_2_percent_stolen_or_20_percent_foreign() {
    check(
        |_, measured| host(measured).steal_percent = 2.1,
        &[Flag::NoisyHost],
    );
    check(
        |_, measured| host(measured).foreign_percent = 20.1,
        &[Flag::NoisyHost],
    );
}

#[test]
fn a_cpu_clock_is_coarse_when_the_window_holds_under_100_steps() {
    check(|_, measured| sender(measured).cpu_step_ns = 20_000_000, &[]);
    check(
        |_, measured| sender(measured).cpu_step_ns = 20_000_001,
        &[Flag::CpuTicks],
    );
}

fn result(means: &[f64]) -> CaseResult {
    let (case, _) = unflagged();
    let runs = means.iter().zip(1..).map(|(mean, repeat)| {
        let mut metrics = Metrics::new();
        metrics.set(Metric::ObservedRate, *mean);
        Run::reported(repeat, repeat, metrics)
    });
    CaseResult::of(case, runs.collect())
}

#[test]
fn fewer_than_five_runs_are_few() {
    let flags = |n| list(&result(&vec![1.0; n]).summary.flags);
    assert_eq!(flags(4), "low-n");
    assert_eq!(flags(5), "none");
}

#[test]
fn runs_that_vary_by_over_ten_percent_are_unstable() {
    assert_eq!(
        list(&result(&[90.0, 95.0, 100.0, 105.0, 110.0]).summary.flags),
        "none"
    );
    assert_eq!(
        list(&result(&[80.0, 90.0, 100.0, 110.0, 120.0]).summary.flags),
        "unstable"
    );
}

#[test]
fn a_case_counts_the_runs_that_raised_a_flag() {
    let (mut case, measured) = unflagged();
    case.rate = 5_000;
    let runs: Vec<_> = (1..=5)
        .map(|n| Run::of(&case, n, n, measured.clone()))
        .collect();
    let result = CaseResult::of(case, runs);
    let expected = "pacing-limited in 5 runs (100.0 % of 5000/s offered)";
    assert_eq!(sentence(&result.summary.flags), expected);
}

#[test]
fn strict_lists_flagged_cases_with_a_hint() {
    let mut results = crate::fixture::results();
    results.cases = vec![result(&[1.0; 5])];
    assert_eq!(strict(&results), Ok(()));
    results.cases.push(result(&[1.0; 2]));
    let error = strict(&results).unwrap_err().to_string();
    assert!(
        error.contains("low-n (n = 2)") && error.contains("\nhint: "),
        "{error}"
    );
}

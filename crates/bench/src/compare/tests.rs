use super::*;
use crate::model::{Area, Case, Metrics, Mode, Run};

fn results(p99s_ms: &[f64]) -> Results {
    let case = Case::new("telpher", Area::Agent, Mode::REQUEST_REPLY).rate(100);
    let runs = p99s_ms.iter().zip(1..).map(|(p99_ms, repeat)| {
        let mut metrics = Metrics::new();
        metrics.set(Metric::LatencyP99, *p99_ms);
        Run::reported(repeat, repeat, metrics)
    });
    let cases = vec![CaseResult::of(case, runs.collect())];
    Results {
        cases,
        ..crate::fixture::results()
    }
}

#[track_caller]
fn check(rule: &str, old: &[f64], new: &[f64], expected: &str) {
    let rules = [rule.parse().unwrap()];
    let judged = judge(&results(old), &results(new), &rules);
    assert_eq!(judged.len(), 1);
    assert_eq!(judged[0].to_string(), expected);
}

const OLD: [f64; 4] = [1.00, 1.01, 0.99, 1.00];

#[test]
fn a_significant_rise_fails() {
    let case = "telpher-agent-request-reply-c1-s0-r100: p99_latency_ms";
    let fail = format!("FAIL    {case} > +10%: +20.0 %");
    check("p99 > +10%", &OLD, &[1.20, 1.21, 1.19, 1.20], &fail);
    let pass = format!("pass    {case} > +10%: +5.0 %");
    check("p99>10%", &OLD, &[1.05, 1.06, 1.04, 1.05], &pass);
    let pass = format!("pass    {case} > +10%: -50.0 %");
    check("p99 > +10 %", &OLD, &[0.5, 0.5, 0.5, 0.5], &pass);
    let fail = format!("FAIL    {case} < -20%: -50.0 %");
    check(
        "p99_latency_ms < -20%",
        &OLD,
        &[0.5, 0.51, 0.49, 0.5],
        &fail,
    );
}

#[test]
fn an_insignificant_rise_is_unclear() {
    let case = "telpher-agent-request-reply-c1-s0-r100: p99_latency_ms";
    let unclear = format!("unclear {case} > +10%: +20.0 %, but no difference is shown");
    check(
        "p99 > +10%",
        &[1.0, 2.0, 0.5, 0.5],
        &[1.2, 2.6, 0.5, 0.5],
        &unclear,
    );
    let single = format!("unclear {case} > +10%: +20.0 % from a single run");
    check("p99 > +10%", &[1.0], &[1.2], &single);
}

#[test]
fn a_missing_figure_is_unclear_and_not_passed() {
    let old = results(&OLD);
    let rules = ["p99 > +10%".parse().unwrap()];
    let nothing = Results {
        cases: Vec::new(),
        ..old.clone()
    };
    let judged = judge(&old, &nothing, &rules);
    assert!(
        matches!(&judged[0].outcome, Outcome::Unclear(reason) if reason.contains("lacks the case"))
    );
    let judged = judge(&nothing, &old, &rules);
    assert!(matches!(&judged[0].outcome, Outcome::Unclear(reason) if reason.contains("no case")));
    let judged = judge(&old, &results(&[]), &rules);
    assert!(matches!(&judged[0].outcome, Outcome::Unclear(reason) if reason.contains("lacks p99")));
    let judged = judge(&results(&[0.0, 0.0]), &old, &rules);
    assert!(matches!(&judged[0].outcome, Outcome::Unclear(reason) if reason.contains("zero")));
}

#[test]
fn an_invalid_rule_has_a_hint() {
    for text in [
        "",
        "p99",
        "p99 > 10",
        "speed > 10%",
        "p99 > ten%",
        "p99 > inf%",
    ] {
        let error = text.parse::<Rule>().unwrap_err().to_string();
        assert!(error.contains("\nhint: "), "{error}");
    }
}

#[test]
fn a_result_compared_with_itself_shows_no_difference() {
    let results = crate::fixture::results();
    let changes = changes(&results, &results);
    assert!(changes.len() > results.cases.len());
    let same = |one: &CaseComparison| one.comparison.verdict == Verdict::NoDifferenceShown;
    assert!(changes.iter().all(same));
}

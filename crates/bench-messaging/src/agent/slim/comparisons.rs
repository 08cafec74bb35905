//! Additional comparisons of a SLIM suite: the same applications through both nodes by the CPU of
//! all processes, and our own agents over the native protocol with SLIM's through SLIM's node.

use super::applications::Applications;
use super::nodes::THEIRS;
use bench::model::{Case, CaseComparison, CaseResult, Metric, Results};
use bench::workload::surroundings::OURS;

/// Adds the comparisons.
pub(super) fn compare(results: &mut Results) {
    let cases = &results.cases;
    let ours = cases.iter().filter(|one| one.case.target == OURS);
    let theirs = || cases.iter().filter(|one| one.case.target == THEIRS);
    let pairs = ours.flat_map(|subject| theirs().map(move |baseline| (subject, baseline)));
    let added: Vec<_> = pairs
        .flat_map(|(subject, baseline)| compared(subject, baseline))
        .collect();
    results.comparisons.extend(added);
}

fn compared(subject: &CaseResult, baseline: &CaseResult) -> Vec<CaseComparison> {
    let metrics = metrics(&subject.case, &baseline.case).into_iter();
    metrics
        .filter_map(|metric| CaseComparison::of(metric, subject, baseline))
        .collect()
}

fn metrics(subject: &Case, baseline: &Case) -> Vec<Metric> {
    let contest = subject.contest();
    let mut metrics = vec![Metric::TotalCpuPerMessage];
    if subject.mode.answered && !contest.contains(&Metric::LatencyP50) {
        metrics.insert(0, Metric::LatencyP50);
    }
    match Applications::of(subject) {
        _ if subject.rivals(baseline) => metrics,
        Applications::Native if is_same_work(subject, baseline) => [contest, metrics].concat(),
        _ => Vec::new(),
    }
}

/// Returns true if the cases differ only in their applications.
fn is_same_work(subject: &Case, baseline: &Case) -> bool {
    let played = Case {
        parameters: baseline.parameters.clone(),
        ..subject.clone()
    };
    played.rivals(baseline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::model::{Area, Mode};

    fn case(target: &str, applications: Applications, rate: u64) -> Case {
        let case = Case::new("", Area::Agent, Mode::REQUEST_REPLY)
            .size(16)
            .rate(rate);
        let cases = applications.cases(&case);
        let found = cases.into_iter().find(|case| case.target == target);
        found.unwrap()
    }

    #[test]
    fn the_same_applications_are_compared_by_the_cpu_of_all_processes() {
        let metrics =
            |ours, theirs, rate| metrics(&case(OURS, ours, rate), &case(THEIRS, theirs, 100));
        let python = Applications::Python;
        let beyond = [Metric::LatencyP50, Metric::TotalCpuPerMessage];
        assert_eq!(metrics(python, python, 100), beyond);
        assert!(metrics(python, python, 1000).is_empty());
        let native = metrics(Applications::Native, python, 100);
        assert!(
            native.contains(&Metric::LatencyMean) && native.contains(&Metric::NodeCpuPerMessage)
        );
        assert!(native.ends_with(&beyond));
        assert!(metrics(Applications::Native, python, 1000).is_empty());
    }
}

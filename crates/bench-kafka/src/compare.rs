//! Comparisons of a Kafka suite, and checks that must hold at any speed.

use bench::model::{Case, CaseComparison, CaseResult, Metric, Mode, Results};
use bench::workload::surroundings::OURS;

use super::matrix::CLUSTER;

/// Compares the subject's cases with all rivals of the same shape. Cases that do not acknowledge
/// from disk are compared only with rivals that do not either.
pub(super) fn compare(cases: &[CaseResult]) -> Vec<CaseComparison> {
    let Some(first) = cases.first() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for subject in cases
        .iter()
        .filter(|one| one.case.target == first.case.target)
    {
        let rivals = cases
            .iter()
            .filter(|other| is_rival(&subject.case, &other.case));
        for rival in rivals {
            let metrics = contest(&subject.case).iter();
            found.extend(metrics.filter_map(|metric| CaseComparison::of(*metric, subject, rival)));
        }
    }
    found
}

const MEMORY: &str = "memory";

fn is_rival(subject: &Case, other: &Case) -> bool {
    let parameter = |case: &Case, name: &str| case.parameters.get(name).cloned();
    let is_durable = |case: &Case| parameter(case, "durability").as_deref() != Some(MEMORY);
    let is_floor = parameter(other, "acks").is_none() && other.mode != subject.mode;
    let is_alike = (subject.clients, subject.in_flight, subject.size)
        == (other.clients, other.in_flight, other.size);
    let is_asked_alike = subject.mode == other.mode
        && ["acks", "compression", "partitions"]
            .iter()
            .all(|name| parameter(subject, name) == parameter(other, name));
    let wants_disk = is_floor || other.target == "kafka-flush";
    subject.target != other.target
        && (other.target != OURS || subject.target == CLUSTER)
        && is_alike
        && (is_floor || is_asked_alike)
        && (is_durable(subject) || !wants_disk)
}

fn contest(case: &Case) -> &'static [Metric] {
    if case.mode == Mode::CONSUME {
        return &[Metric::ObservedRate, Metric::NodeCpuPerMessage];
    }
    if case.mode == Mode::END_TO_END || case.paced() {
        return &[
            Metric::LatencyP50,
            Metric::LatencyP99,
            Metric::LatencyP999,
            Metric::NodeCpuPerMessage,
        ];
    }
    &[
        Metric::ObservedRate,
        Metric::LatencyP50,
        Metric::LatencyP99,
        Metric::LatencyP999,
        Metric::NodeCpuPerMessage,
    ]
}

/// Lists violations as sentences: acknowledged messages that are missing, and failed messages of
/// the subject.
#[must_use]
pub fn misses(results: &Results) -> Vec<String> {
    let subject = results.cases.first().map(|one| one.case.target.clone());
    let mut found = Vec::new();
    for one in &results.cases {
        let is_subject = Some(&one.case.target) == subject.as_ref();
        for run in &one.runs {
            let (key, repeat) = (one.case.key(), run.repeat);
            let streamed = run.measured.as_ref().and_then(|one| one.streamed);
            if let Some(verified) = streamed.and_then(|one| one.verified)
                && !verified.is_clean()
            {
                found.push(format!(
                    "{key}: of {} messages acknowledged in run {repeat}, {} are lost, {} duplicated, {} moved, {} damaged",
                    verified.acked,
                    verified.lost,
                    verified.duplicated,
                    verified.moved,
                    verified.damaged
                ));
            }
            let failed = run.error_count();
            if is_subject && failed > 0 {
                found.push(format!("{key}: {failed} messages of run {repeat} failed"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::model::Area;

    fn case(target: &str, parameters: &[(&str, &str)]) -> Case {
        let case = Case::new(target, Area::Kafka, Mode::PRODUCE)
            .in_flight(128)
            .size(256);
        let add = |case: Case, (name, value): &(&str, &str)| case.parameter(name, value);
        parameters.iter().fold(case, add)
    }

    #[test]
    fn memory_cases_are_compared_only_with_rivals_that_do_not_sync() {
        let disk = case(OURS, &[("acks", "1"), ("durability", "disk")]);
        let memory = case(OURS, &[("acks", "1"), ("durability", "memory")]);
        let kafka = case("kafka", &[("acks", "1")]);
        let flush = case("kafka-flush", &[("acks", "1")]);
        let echo = Case {
            mode: Mode::APPEND,
            ..case("durable-echo", &[])
        };
        for rival in [&kafka, &flush, &echo] {
            assert!(is_rival(&disk, rival), "{rival:?}");
        }
        let cluster = case(CLUSTER, &[("acks", "1"), ("nodes", "3")]);
        assert!(is_rival(&cluster, &disk));
        assert!(is_rival(&memory, &kafka));
        for no_rival in [&flush, &echo, &disk] {
            assert!(!is_rival(&memory, no_rival), "{no_rival:?}");
        }
        assert!(!is_rival(&disk, &case("kafka", &[("acks", "all")])));
        assert!(!is_rival(&disk, &echo.in_flight(1)));
    }
}

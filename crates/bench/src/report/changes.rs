//! A row for each change between two results of one suite.

use super::Table;
use super::common::ratio;
use crate::format::{human, human_interval};
use crate::model::{CaseComparison, Metric, Results};

/// Table of the differences that [`crate::compare::changes`] found between `old` and `new`.
#[must_use]
pub fn changes(old: &Results, new: &Results, found: &[CaseComparison]) -> Table {
    let heads = [
        "Case", "Metric", "Verdict", "Old", "New", "Ratio", "95 % CI",
    ];
    let mut table = Table::new(heads, 3);
    for one in found {
        let CaseComparison {
            metric, comparison, ..
        } = one;
        let [ratio, interval] = ratio(comparison);
        table.row([
            Some(one.subject.clone()),
            Some(metric.label().to_owned()),
            Some(one.verdict().to_owned()),
            figure(old, &one.baseline, *metric),
            figure(new, &one.subject, *metric),
            ratio,
            interval,
        ]);
    }
    table
}

fn figure(results: &Results, key: &str, metric: Metric) -> Option<String> {
    let described = results.case(key)?.summary.get(metric)?;
    let mean = human(described.mean, metric.unit());
    Some(match described.interval {
        Some(interval) => format!("{mean} ({})", human_interval(interval, metric.unit())),
        None => mean,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;

    #[test]
    fn a_result_compared_with_itself_shows_no_difference() {
        let results = crate::fixture::results();
        let found = compare::changes(&results, &results);
        let text = changes(&results, &results, &found).markdown();
        assert_eq!(text.lines().count(), found.len() + 2);
        assert!(
            !text.contains("faster") && !text.contains("slower"),
            "{text}"
        );
        assert!(text.contains("| 1.00 × | "), "{text}");
    }
}

//! A row for each ratio between two cases.

use crate::format::figures;
use crate::model::{Case, CaseComparison, Results};
use crate::report::Table;

pub(super) fn ratios(results: &Results) -> Table {
    let heads = [
        "Of", "Subject", "Baseline", "Metric", "Verdict", "Ratio", "95 % CI", "df",
    ];
    let mut table = Table::new(heads, 5);
    for found in &results.comparisons {
        let CaseComparison {
            metric, comparison, ..
        } = found;
        let [of, subject, baseline] = sides(results, found);
        table.row([
            Some(of),
            Some(subject),
            Some(baseline),
            Some(metric.label().to_owned()),
            Some(found.verdict().to_owned()),
            comparison
                .ratio
                .map(|ratio| format!("{} ×", figures(ratio))),
            comparison
                .interval
                .map(|interval| format!("{} – {}", figures(interval.low), figures(interval.high))),
            comparison.degrees.map(|degrees| format!("{degrees:.1}")),
        ]);
    }
    table
}

/// What two cases have in common, and each side by what tells it from the other.
fn sides(results: &Results, found: &CaseComparison) -> [String; 3] {
    let (Some(subject), Some(baseline)) =
        (results.case(&found.subject), results.case(&found.baseline))
    else {
        return [String::new(), found.subject.clone(), found.baseline.clone()];
    };
    let (subject, baseline) = (&subject.case, &baseline.case);
    if subject.target != baseline.target {
        let of = format!("{} · {}", subject.mode.name, subject.words());
        return [of, subject.target.clone(), baseline.target.clone()];
    }
    let own = ["mode", "in flight"];
    let depth = |case: &Case| match case.in_flight {
        Some(depth) => format!("{} × {depth}", case.mode.name),
        None => case.mode.name.to_string(),
    };
    let common = format!("{} · {}", subject.target, subject.words_without(&own));
    [common, depth(subject), depth(baseline)]
}

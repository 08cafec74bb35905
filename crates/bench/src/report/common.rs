//! Parts that several reports share.

use super::Table;
use crate::format::figures;
use crate::model::{Area, CaseResult, Results};
use crate::stats::{Comparison, Interval};

/// Returns the cases of an area.
pub(super) fn of(results: &Results, area: Area) -> impl Iterator<Item = &CaseResult> {
    let cases = results.cases.iter();
    cases.filter(move |one| one.case.area == area)
}

/// Renders a section for each table that has rows. Columns without a figure are left out.
pub(super) fn sections<'h>(tables: impl IntoIterator<Item = (&'h str, Table)>) -> String {
    let mut sections = Vec::new();
    for (heading, table) in tables {
        if !table.is_empty() {
            let table = table.without_empty_columns();
            sections.push(format!("## {heading}\n\n{}", table.markdown()));
        }
    }
    sections.join("\n")
}

/// Lists the facts of the set-up, one line each.
pub(super) fn methodology(results: &Results) -> String {
    let notes = results.setup.notes.iter();
    notes
        .map(|(name, words)| format!("- {name}: {words}\n"))
        .collect()
}

/// Formats an interval as `low – high`.
pub(super) fn span(interval: Interval) -> String {
    let Interval { low, high } = interval;
    format!("{} – {}", figures(low), figures(high))
}

/// Formats the ratio of a comparison and its interval.
pub(super) fn ratio(comparison: &Comparison) -> [Option<String>; 2] {
    let ratio = comparison.ratio;
    let ratio = ratio.map(|ratio| format!("{} ×", figures(ratio)));
    [ratio, comparison.interval.map(span)]
}

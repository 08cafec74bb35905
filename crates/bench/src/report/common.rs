//! What reports say alike.

use super::Table;
use crate::format::figures;
use crate::model::{Area, CaseResult, Results};
use crate::stats::{Comparison, Interval};

/// The cases of an area.
pub(super) fn of(results: &Results, area: Area) -> impl Iterator<Item = &CaseResult> {
    let cases = results.cases.iter();
    cases.filter(move |one| one.case.area == area)
}

/// A section for each table that has any row, without what is empty in it.
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

/// How it was measured, a line for each fact.
pub(super) fn methodology(results: &Results) -> String {
    let notes = results.setup.notes.iter();
    notes
        .map(|(name, words)| format!("- {name}: {words}\n"))
        .collect()
}

/// From where to where.
pub(super) fn span(interval: Interval) -> String {
    let Interval { low, high } = interval;
    format!("{} – {}", figures(low), figures(high))
}

/// How many times one is of the other, and within what.
pub(super) fn ratio(comparison: &Comparison) -> [Option<String>; 2] {
    let ratio = comparison.ratio;
    let ratio = ratio.map(|ratio| format!("{} ×", figures(ratio)));
    [ratio, comparison.interval.map(span)]
}

//! The main tables: a row per case with the common figures in readable units.

mod capacity;
mod columns;
mod ratios;

use super::Table;
use crate::flags;
use crate::model::{CaseResult, Results};
use capacity::capacity;
use columns::{BRIEF, FULL};
use ratios::ratios;

/// A table with its heading and the notes below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Heading: the area and the parameters that all rows share.
    pub heading: String,
    /// The table.
    pub table: Table,
    /// Flags, failures and explanations, a line each.
    pub notes: Vec<String>,
}

/// Level of detail of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Means with their margins, to fit a terminal.
    Brief,
    /// Intervals and everything measured.
    Full,
}

/// A section for each group of comparable cases, then capacity and ratios where there are some.
#[must_use]
pub fn overview(results: &Results, detail: Detail) -> Vec<Section> {
    let mut sections: Vec<_> = results
        .comparable()
        .iter()
        .map(|cases| section(cases, detail))
        .collect();
    if !results.sweeps.is_empty() {
        sections.push(capacity(&results.sweeps));
    }
    if !results.comparisons.is_empty() {
        let (table, common) = ratios(results);
        let how = "Ratio of means; Fieller interval with Welch–Satterthwaite degrees of freedom.";
        sections.push(Section {
            heading: "ratios".to_owned(),
            table,
            notes: common.into_iter().chain([how.to_owned()]).collect(),
        });
    }
    sections
}

/// All tables for a terminal.
#[must_use]
pub fn terminal(results: &Results) -> String {
    let mut text = String::new();
    for Section {
        heading,
        table,
        notes,
    } in overview(results, Detail::Brief)
    {
        text += &format!("\n{heading}\n{}\n", table.terminal());
        for note in notes {
            text += &format!("   {note}\n");
        }
    }
    text += "\nMeans over runs, ± half the 95 % interval; p99.9* is over the messages of all runs (pooled).\n";
    let raised = flags::kinds(results);
    if !raised.is_empty() {
        text += "\nflags\n";
        for flag in raised {
            text += &format!("   {flag}: {}\n", flag.meaning());
        }
    }
    text
}

/// Builds the section of comparable cases. Parameters that all of them share appear only in the
/// heading.
fn section(cases: &[&CaseResult], detail: Detail) -> Section {
    let first = cases[0].case.parts();
    let shared: Vec<_> = first
        .iter()
        .filter(|part| cases.iter().all(|one| one.case.parts().contains(part)))
        .map(|(name, words)| (*name, words.as_str()))
        .collect();
    let names: Vec<&str> = shared.iter().map(|(name, _)| *name).collect();
    let words: Vec<&str> = shared.iter().map(|(_, words)| *words).collect();
    let heading = format!("{} · {}", cases[0].case.area.name(), words.join(" · "));
    let columns = match detail {
        Detail::Brief => BRIEF,
        Detail::Full => FULL,
    };
    let heads = ["Target", "Case", "n"]
        .into_iter()
        .chain(columns.iter().map(|(head, _)| *head));
    let mut table = Table::new(heads, 2);
    let mut notes = Vec::new();
    for result in cases {
        let (target, own) = (
            result.case.target.clone(),
            result.case.description_without(&names),
        );
        let own = (!own.is_empty()).then_some(own);
        let side = own
            .iter()
            .fold(target.clone(), |side, words| format!("{side}, {words}"));
        let left = [Some(target), own, Some(result.summary.runs.to_string())];
        table.row(
            left.into_iter()
                .chain(columns.iter().map(|(_, cell)| cell(result))),
        );
        if !result.summary.flags.is_empty() {
            notes.push(format!(
                "{side}: {}",
                flags::sentence(&result.summary.flags)
            ));
        }
        for (kind, count) in &result.summary.errors {
            notes.push(format!("{side}: {count} × {kind}"));
        }
    }
    Section {
        heading,
        table: table.without_empty_columns(),
        notes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_overview_matches_the_snapshot() {
        insta::assert_snapshot!(terminal(&crate::fixture::results()));
    }

    #[test]
    fn full_overview_matches_the_snapshot() {
        let sections = overview(&crate::fixture::results(), Detail::Full);
        let text: Vec<_> = sections
            .iter()
            .map(|one| format!("{}\n{}", one.heading, one.table.markdown()))
            .collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}

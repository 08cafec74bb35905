//! The SLIM suite's report: live lines, statistical summary and technical report, with the suite's
//! headings, columns and number format. The method section describes our own method.
//!
//! With one target the tables are exactly the suite's. With several, each target has its own table
//! under its name, so that the columns stay the same.

mod capacity;
mod method;
mod tables;

use std::collections::BTreeSet;

use crate::format::ABSENT;
use crate::lines;
use crate::model::{Case, Results};

/// Renders all parts in one document: live progress markers, suite summary, technical report.
#[must_use]
pub fn full(results: &Results) -> String {
    let mut text = format!("# Telpher Benchmark Report: {}\n\n", results.name);
    let commit = results.environment.commit.as_deref().unwrap_or(ABSENT);
    text += &format!(
        "- Command: `{}`\n- Commit: {commit}\n\n",
        results.environment.command
    );
    text += "## Live Progress Markers\n\n";
    for line in live_lines(results) {
        text += &format!("{line}\n");
    }
    text += &format!("\n## Suite Summary\n\n{}", suite_summary(results));
    text + &format!("## Technical Report\n\n{}", technical_report(results))
}

/// Renders `suite_summary.md`.
#[must_use]
pub fn suite_summary(results: &Results) -> String {
    let mut text = String::from("# Telpher Benchmark Statistical Summary\n\n");
    text += &format!("**Generated:** {} UTC\n\n", results.generated);
    for (name, value) in parameters(results) {
        text += &format!("**{name}:** {value}\n");
    }
    text += "\nThis summary reports mean, sample variance, and Student's t 95% confidence intervals over \
        repeated executions of each benchmark case.\n\n";
    text += &tables::modes(results);
    if !results.sweeps.is_empty() {
        text += &capacity::summary(&results.sweeps);
    }
    text
}

/// Renders `technical_report.md`.
#[must_use]
pub fn technical_report(results: &Results) -> String {
    let mut text = String::from("# Telpher Benchmark Technical Report\n\n");
    text += &method::before(results);
    text += &format!("## Full Matrix\n\n{}", tables::modes(results));
    if !results.sweeps.is_empty() {
        text += &capacity::technical(&results.sweeps);
    }
    text + &method::after(results)
}

/// Returns all lines of the suite in report order: the runs of each case in the order they ran, a
/// summary after each mode, then the sweeps.
fn live_lines(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for group in results.groups() {
        for result in &group {
            lines.extend(
                result
                    .runs
                    .iter()
                    .map(|run| lines::benchmark_result(&result.case, run)),
            );
        }
        lines.extend(lines::mode_summary(&group));
    }
    for sweep in &results.sweeps {
        lines.extend(
            sweep
                .steps
                .iter()
                .map(|step| lines::sweep_step(&sweep.case, step)),
        );
        lines.extend(lines::capacity(sweep));
    }
    lines
}

/// Returns the suite's parameters for the head of the summary.
fn parameters(results: &Results) -> Vec<(&'static str, String)> {
    let all = |value: fn(&Case) -> String| {
        let mut values: Vec<String> = Vec::new();
        for result in &results.cases {
            let value = value(&result.case);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.join(" ")
    };
    let numbers = |of: fn(&Case) -> Option<u64>| {
        let values: BTreeSet<u64> = results
            .cases
            .iter()
            .filter_map(|one| of(&one.case))
            .collect();
        let words: Vec<_> = values.iter().map(u64::to_string).collect();
        (!words.is_empty()).then(|| words.join(" "))
    };
    let setup = &results.setup;
    let known: [(&'static str, Option<String>); 11] = [
        ("Server", setup.server.clone()),
        ("Destination", setup.destination.clone()),
        ("Targets", Some(all(|case| case.target.clone()))),
        ("Modes", Some(all(|case| case.mode.name.to_string()))),
        ("Clients", numbers(|case| Some(u64::from(case.clients)))),
        ("Sizes", numbers(|case| Some(case.size))),
        (
            "Request-Reply Rates",
            numbers(|case| case.mode.answered.then_some(case.rate)),
        ),
        (
            "One-Way Rates",
            numbers(|case| one_way(case).then_some(case.rate)),
        ),
        (
            "Write Rates",
            numbers(|case| (case.mode.name == "write").then_some(case.rate)),
        ),
        ("Duration Per Run", setup.duration.clone()),
        (
            "Repeats Per Case",
            setup.repeats.map(|repeats| repeats.to_string()),
        ),
    ];
    known
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn one_way(case: &Case) -> bool {
    !case.mode.answered && case.mode.name != "write"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slim_report_matches_the_snapshot() {
        insta::assert_snapshot!(full(&crate::fixture::results()));
    }

    #[test]
    fn a_suite_of_one_target_has_the_suites_headings() {
        let mut results = crate::fixture::results();
        results
            .cases
            .retain(|result| result.case.target == "telpher");
        let headings: Vec<String> = full(&results)
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        for expected in [
            "## Live Progress Markers",
            "## Suite Summary",
            "### Request-Reply Results",
            "### Fire-And-Forget Results",
            "### Write Results",
            "## Technical Report",
            "## Scope",
            "## Test Setup",
            "## Measurement Methodology",
            "### Execution Model",
            "### Sender-Side Measurement",
            "### Responder-Side Measurement",
            "### CPU Measurement",
            "### Statistical Treatment",
            "## Test Types",
            "### Request-Reply",
            "### Fire-And-Forget",
            "### Write",
            "## Full Matrix",
            "## Result Interpretation",
        ] {
            assert!(
                headings.iter().any(|heading| heading == expected),
                "{expected} is missing"
            );
        }
    }

    #[test]
    fn the_method_describes_the_run() {
        let mut results = crate::fixture::results();
        assert!(technical_report(&results).contains("ran one after the other"));
        assert!(technical_report(&results).contains("- node process\n"));
        // The first two cases of 25 runs each, as if they had taken turns.
        for (position, result) in results.cases.iter_mut().take(2).enumerate() {
            for (run, turn) in result.runs.iter_mut().zip(0u32..) {
                run.order = 2 * turn + position as u32 + 1;
            }
        }
        assert!(technical_report(&results).contains("took turns"));
        results
            .cases
            .iter_mut()
            .flat_map(|one| &mut one.runs)
            .for_each(|run| run.measured = None);
        assert!(technical_report(&results).contains("CPU usage was not collected."));
    }
}

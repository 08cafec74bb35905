//! A table of ratios between the cases of committed results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use bench::model::{CaseComparison, Metric, Results};
use serde_json::Value;

use super::root;

pub(super) const RATE: Metric = Metric::ObservedRate;
pub(super) const MEAN: Metric = Metric::LatencyMean;
pub(super) const P50: Metric = Metric::LatencyP50;
pub(super) const P99: Metric = Metric::LatencyP99;
pub(super) const CPU: Metric = Metric::NodeCpuPerMessage;
pub(super) const ALL_CPU: Metric = Metric::TotalCpuPerMessage;

/// A ratio of two cases of a suite, named by their keys.
pub(super) struct Ratio {
    suite: &'static str,
    subject: String,
    baseline: String,
    metric: Metric,
}

pub(super) enum Cell {
    Text(String),
    Ratio(Ratio),
}

pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) head: &'static [&'static str],
    /// Number of columns with text, which come first.
    pub(super) labels: usize,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn render(&self, committed: &mut Committed) -> String {
        let mut text = format!("| {} |\n|", self.head.join(" | "));
        for column in 0..self.head.len() {
            text += if column < self.labels { "---|" } else { "--:|" };
        }
        text += "\n";
        for row in &self.rows {
            assert_eq!(row.len(), self.head.len());
            text += "|";
            for cell in row {
                let words = match cell {
                    Cell::Text(words) => words.clone(),
                    Cell::Ratio(ratio) => committed.ratio(ratio),
                };
                write!(text, " {words} |").unwrap();
            }
            text += "\n";
        }
        text
    }
}

pub(super) fn text(words: impl Into<String>) -> Cell {
    Cell::Text(words.into())
}

pub(super) fn pair(
    suite: &'static str,
    subject: impl Into<String>,
    baseline: impl Into<String>,
    metric: Metric,
) -> Cell {
    Cell::Ratio(Ratio {
        suite,
        subject: subject.into(),
        baseline: baseline.into(),
        metric,
    })
}

/// Committed results by name, read once.
#[derive(Default)]
pub(super) struct Committed {
    suites: BTreeMap<&'static str, Results>,
}

impl Committed {
    /// Returns the ratio of two cases with its 95 % interval.
    fn ratio(&mut self, cell: &Ratio) -> String {
        let suite = self.suites.entry(cell.suite).or_insert_with(|| {
            let path = root().join(format!("bench/results/{}/results.json.gz", cell.suite));
            Results::from_bytes(&fs::read(path).unwrap()).unwrap()
        });
        let case = |key: &str| {
            let found = suite.case(key);
            found.unwrap_or_else(|| panic!("{} has no case {key}", cell.suite))
        };
        let found = CaseComparison::of(cell.metric, case(&cell.subject), case(&cell.baseline));
        let found = found.unwrap_or_else(|| panic!("{}: no {:?}", cell.subject, cell.metric));
        let interval = match found.comparison.interval {
            Some(interval) => {
                let (low, high) = (two_figures(interval.low), two_figures(interval.high));
                format!("{low} – {high}")
            }
            None => "n/a".to_owned(),
        };
        let ratio = found.comparison.ratio.map(two_figures).unwrap();
        format!("{ratio} × [{interval}]")
    }
}

/// Reads the JSON report of a check.
pub(super) fn report(name: &str) -> Value {
    let path = root().join(format!("bench/results/{name}/results.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub(super) fn number(report: &Value, field: &str) -> f64 {
    let value = report[field].as_f64();
    value.unwrap_or_else(|| panic!("no number `{field}` in {report}"))
}

/// Formats a number with two significant figures, or as an integer from 100.
pub(super) fn two_figures(value: f64) -> String {
    let decimals = |value: f64| (1 - value.abs().max(1e-9).log10().floor() as i32).max(0) as usize;
    let rounded = format!("{value:.*}", decimals(value));
    // Rounding may add a digit: 9.96 is 10.
    let value: f64 = rounded.parse().unwrap();
    format!("{value:.*}", decimals(value))
}

#[test]
fn published_numbers_have_two_significant_figures() {
    for (value, expected) in [
        (0.0386, "0.039"),
        (0.996, "1.0"),
        (9.96, "10"),
        (16.4, "16"),
        (196.3, "196"),
    ] {
        assert_eq!(two_figures(value), expected);
    }
}

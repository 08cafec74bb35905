//! Results of a suite, with every figure that is derived from its measurements.

use serde::{Deserialize, Serialize};

use super::{Case, Environment, Metric, Run, Summary, Unit};
use crate::flags::RaisedFlag;
use crate::stats::{Comparison, Verdict, compare};
use crate::sweep::{Outcome, Phase, SweepOptions};

/// The results of a suite.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Results {
    /// [`SCHEMA_VERSION`](super::SCHEMA_VERSION) of the writer.
    pub schema_version: u32,
    /// Name of the suite.
    pub name: String,
    /// Time at which the suite ended, in UTC: `2026-06-26 08:01:47`.
    pub generated: String,
    /// The machine and the command.
    pub environment: Environment,
    /// Set-up of the suite, in the words of the workload.
    pub setup: Setup,
    /// Every case in the order in which it first ran.
    pub cases: Vec<CaseResult>,
    /// Ratios between cases.
    pub comparisons: Vec<CaseComparison>,
    /// Capacity sweeps.
    pub sweeps: Vec<SweepResult>,
}

/// Set-up of a suite. Empty fields are left out of the reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Address of the node or the server.
    pub server: Option<String>,
    /// Name to which the messages were sent.
    pub destination: Option<String>,
    /// Configured length of a run, in words: `1s`.
    pub duration: Option<String>,
    /// Configured repeats of a case.
    pub repeats: Option<u32>,
    /// Further facts in plain words, name and value, in order: `Sender`, `telpher bench-role sender`.
    pub notes: Vec<(String, String)>,
}

/// A case with its runs and their summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    /// The case.
    pub case: Case,
    /// Statistics of the runs.
    pub summary: Summary,
    /// All repeats.
    pub runs: Vec<Run>,
}

impl CaseResult {
    /// Summarizes the runs of a case.
    #[must_use]
    pub fn of(case: Case, runs: Vec<Run>) -> Self {
        Self {
            summary: Summary::of(&case, &runs),
            case,
            runs,
        }
    }
}

/// Comparison of two cases by one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseComparison {
    /// The compared metric.
    pub metric: Metric,
    /// [`Case::key`] of the subject.
    pub subject: String,
    /// [`Case::key`] of the baseline.
    pub baseline: String,
    /// Ratio, interval and verdict.
    pub comparison: Comparison,
}

impl CaseComparison {
    /// Compares two cases by a metric. `None` if one of them lacks it.
    #[must_use]
    pub fn of(metric: Metric, subject: &CaseResult, baseline: &CaseResult) -> Option<Self> {
        let (ours, theirs) = (subject.summary.get(metric)?, baseline.summary.get(metric)?);
        Some(Self {
            metric,
            subject: subject.case.key(),
            baseline: baseline.case.key(),
            comparison: compare(ours, theirs, metric.better()),
        })
    }

    /// Returns the verdict in words that fit the metric: memory is "less", not "faster".
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        let speed = matches!(
            self.metric.unit(),
            Unit::PerSecond | Unit::Millis | Unit::Seconds
        );
        match self.comparison.verdict {
            Verdict::Faster if !speed => "less",
            Verdict::Slower if !speed => "more",
            verdict => verdict.description(),
        }
    }
}

/// A capacity sweep of one case; the case's rate is the first one tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepResult {
    /// The swept case.
    pub case: Case,
    /// Options of the sweep.
    pub options: SweepOptions,
    /// Every step.
    pub steps: Vec<SweepStep>,
    /// Result; absent when the sweep was cut short.
    pub outcome: Option<Outcome>,
}

impl SweepResult {
    /// Returns the step with the best throughput.
    #[must_use]
    pub fn best(&self) -> Option<&SweepStep> {
        let best_step = self.outcome.as_ref()?.best_step;
        self.steps.iter().find(|step| step.step == best_step)
    }
}

/// One step of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepStep {
    /// Number of the step from 1, over both phases.
    pub step: u32,
    /// Phase of the step.
    pub phase: Phase,
    /// Offered messages per second.
    pub rate: u64,
    /// Gain over the best step before, in percent; absent at the first step.
    pub gain_percent: Option<f64>,
    /// True if the step became the best.
    pub improved: bool,
    /// Statistics of the repeats.
    pub summary: Summary,
    /// All repeats of the step.
    pub runs: Vec<Run>,
}

impl SweepStep {
    /// Returns the failures over all repeats.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.runs.iter().map(Run::error_count).sum()
    }
}

impl Results {
    /// Returns the case with this key.
    #[must_use]
    pub fn case(&self, key: &str) -> Option<&CaseResult> {
        self.cases.iter().find(|result| result.case.key() == key)
    }

    /// Groups the cases by target, area and mode, in the order in which they first ran.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<&CaseResult>> {
        let mut groups: Vec<Vec<&CaseResult>> = Vec::new();
        let alike = |one: &Case, other: &Case| {
            (&one.target, one.area, &one.mode) == (&other.target, other.area, &other.mode)
        };
        for result in &self.cases {
            match groups
                .iter_mut()
                .find(|group| alike(&group[0].case, &result.case))
            {
                Some(group) => group.push(result),
                None => groups.push(vec![result]),
            }
        }
        groups
    }

    /// Groups the cases that belong in one table or on one axis: those of one area and mode, or of
    /// unpaced modes whose rates may be compared.
    #[must_use]
    pub fn comparable(&self) -> Vec<Vec<&CaseResult>> {
        let mut groups: Vec<Vec<&CaseResult>> = Vec::new();
        let alike = |one: &Case, other: &Case| {
            let series = one.series().is_some() && other.series().is_some();
            one.area == other.area && (one.mode == other.mode || series)
        };
        for result in &self.cases {
            match groups
                .iter_mut()
                .find(|group| alike(&group[0].case, &result.case))
            {
                Some(group) => group.push(result),
                None => groups.push(vec![result]),
            }
        }
        groups
    }

    /// Returns true if repeats of different cases were interleaved, by the order in which they ran.
    #[must_use]
    pub fn interleaved(&self) -> bool {
        let spans = self
            .cases
            .iter()
            .filter_map(|one| Some((one.runs.first()?.order, one.runs.last()?.order)));
        let mut spans: Vec<(u32, u32)> = spans.collect();
        spans.sort_unstable();
        spans.windows(2).any(|pair| pair[1].0 < pair[0].1)
    }

    /// Iterates over every flag raised, with the key of its case.
    pub fn flags(&self) -> impl Iterator<Item = (String, &RaisedFlag)> {
        self.cases.iter().flat_map(|result| {
            result
                .summary
                .flags
                .iter()
                .map(move |raised| (result.case.key(), raised))
        })
    }

    /// Compares the cases of the first target with those of each other target that ran the same
    /// workload, and with the first case of their [`Case::series`].
    pub fn compare(&mut self) {
        let mut comparisons = Vec::new();
        let is_ours = |one: &&CaseResult| one.case.target == self.cases[0].case.target;
        for subject in self.cases.iter().filter(is_ours) {
            let rivals = self.cases.iter();
            for rival in rivals.filter(|one| one.case.rivals(&subject.case)) {
                let metrics = subject.case.contest().into_iter();
                comparisons
                    .extend(metrics.filter_map(|one| CaseComparison::of(one, subject, rival)));
            }
        }
        for subject in self.cases.iter().filter(is_ours) {
            let Some(series) = subject.case.series() else {
                continue;
            };
            let mut cases = self.cases.iter();
            let first = cases.find(|one| one.case.series().as_ref() == Some(&series));
            let speedup = Metric::ObservedRate;
            if let Some(first) = first.filter(|first| first.case != subject.case) {
                comparisons.extend(CaseComparison::of(speedup, subject, first));
            }
        }
        self.comparisons = comparisons;
    }
}

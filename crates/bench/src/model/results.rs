//! Everything a suite found out: the contents of `results.json`.

use serde::{Deserialize, Serialize};

use super::{Case, Environment, Metric, Run, Summary, Unit};
use crate::flags::Raised;
use crate::stats::{Comparison, Verdict, compare};
use crate::sweep::{Outcome, Phase, SweepOptions};

/// Version of the JSON layout; raised when a reader of the old one would be misled.
pub const SCHEMA_VERSION: u32 = 1;

/// The results of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Name of the suite.
    pub name: String,
    /// When it ended, in UTC: `2026-06-26 08:01:47`.
    pub generated: String,
    /// The machine and the command.
    pub environment: Environment,
    /// How the suite was set up, in the words of the workload.
    pub setup: Setup,
    /// Every case in the order in which it first ran.
    pub cases: Vec<CaseResult>,
    /// Ratios between cases.
    pub comparisons: Vec<CaseComparison>,
    /// Capacity sweeps.
    pub sweeps: Vec<SweepResult>,
}

/// How a suite was set up. What is empty is left out of the reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Where the node or the server listened.
    pub server: Option<String>,
    /// Name the messages were sent to.
    pub destination: Option<String>,
    /// Configured length of a run, in words: `1s`.
    pub duration: Option<String>,
    /// Configured repeats of a case.
    pub repeats: Option<u32>,
    /// Further facts in plain words, name and value, in order: `Sender`, `telpher bench-role sender`.
    pub notes: Vec<(String, String)>,
}

/// A case with its runs and their summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// What was run.
    pub case: Case,
    /// Its statistics.
    pub summary: Summary,
    /// Every repeat.
    pub runs: Vec<Run>,
}

impl CaseResult {
    /// Summarises the runs of a case.
    #[must_use]
    pub fn of(case: Case, runs: Vec<Run>) -> Self {
        Self {
            summary: Summary::of(&case, &runs),
            case,
            runs,
        }
    }
}

/// One case against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseComparison {
    /// The quantity compared.
    pub metric: Metric,
    /// [`Case::key`] of the subject.
    pub subject: String,
    /// [`Case::key`] of the baseline.
    pub baseline: String,
    /// Ratio, interval and verdict.
    pub comparison: Comparison,
}

impl CaseComparison {
    /// Compares two cases by a metric that both have.
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

    /// The verdict in words that fit the metric: memory is not faster.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        let speed = matches!(
            self.metric.unit(),
            Unit::PerSecond | Unit::Millis | Unit::Seconds
        );
        match self.comparison.verdict {
            Verdict::Faster if !speed => "less",
            Verdict::Slower if !speed => "more",
            verdict => verdict.words(),
        }
    }
}

/// A capacity sweep of one case; the case's rate is the first one tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// What was swept.
    pub case: Case,
    /// How.
    pub options: SweepOptions,
    /// Every step.
    pub steps: Vec<SweepStep>,
    /// What was found; absent when the sweep was cut short.
    pub outcome: Option<Outcome>,
}

impl SweepResult {
    /// The step with the best throughput.
    #[must_use]
    pub fn best(&self) -> Option<&SweepStep> {
        let best_step = self.outcome.as_ref()?.best_step;
        self.steps.iter().find(|step| step.step == best_step)
    }
}

/// One step of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepStep {
    /// From 1, over both phases.
    pub step: u32,
    /// Growing or closing in.
    pub phase: Phase,
    /// Offered messages per second.
    pub rate: u64,
    /// Gain over the best before, in percent; absent at the first step.
    pub gain_percent: Option<f64>,
    /// Whether it became the best.
    pub improved: bool,
    /// Statistics of its repeats.
    pub summary: Summary,
    /// Its repeats.
    pub runs: Vec<Run>,
}

impl SweepStep {
    /// Failures over all repeats.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.runs.iter().map(Run::error_count).sum()
    }
}

impl Results {
    /// Reads `results.json`.
    ///
    /// # Errors
    /// When the text is no result, or one of another layout.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            schema_version: u32,
        }
        let head: Head = serde_json::from_str(text).map_err(ReadError::NotResults)?;
        if head.schema_version != SCHEMA_VERSION {
            return Err(ReadError::Layout {
                found: head.schema_version,
            });
        }
        serde_json::from_str(text).map_err(ReadError::NotResults)
    }

    /// The case of that key.
    #[must_use]
    pub fn case(&self, key: &str) -> Option<&CaseResult> {
        self.cases.iter().find(|result| result.case.key() == key)
    }

    /// The cases by target, area and mode, in the order in which they first ran.
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

    /// The cases that belong in one table or on one axis: of one area and mode, or of unpaced modes
    /// whose rates may be compared.
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

    /// Whether repeats of different cases took turns, by the order in which they ran.
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

    /// Every flag raised, with the key of its case.
    pub fn flags(&self) -> impl Iterator<Item = (String, &Raised)> {
        self.cases.iter().flat_map(|result| {
            result
                .summary
                .flags
                .iter()
                .map(move |raised| (result.case.key(), raised))
        })
    }

    /// Compares the cases of the first target: with each other target's that did the same, and within
    /// a [`Case::series`] with the first.
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

/// Why a text is not read as results.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON of the right shape.
    #[error(
        "not the results of a benchmark: {0}\nhint: give a results.json of a bench-out directory"
    )]
    NotResults(serde_json::Error),
    /// It was written by another version.
    #[error(
        "the results have layout {found}, this version reads layout {SCHEMA_VERSION}\nhint: read them with \
         the version that wrote them, or run the benchmark again"
    )]
    Layout {
        /// Layout of the text.
        found: u32,
    },
}

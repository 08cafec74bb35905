//! Recorder of a running suite, the interface for workloads.
//!
//! The workload runs its cases in the order of [`crate::plan`] and hands over each measurement. The
//! suite checks it, derives its figures, prints its live line and stores it. The suite starts no
//! process, sends nothing and makes no decision about the load.

use crate::format::human;
use crate::lines;
use crate::measurement::{Measurement, MeasurementError};
use crate::model::{
    Case, CaseResult, Environment, Metric, Results, Run, SCHEMA_VERSION, Setup, Summary,
    SweepResult, SweepStep,
};
use crate::progress::Progress;
use crate::sweep::{Attempt, Sweep, SweepOptions, SweepOptionsError};
use meter::clock::Utc;

/// A suite that is being recorded.
pub struct Suite {
    name: String,
    environment: Environment,
    setup: Setup,
    progress: Progress,
    cases: Vec<(Case, Vec<Run>)>,
    sweeps: Vec<SweepResult>,
    runs: u32,
}

impl Suite {
    /// Makes a suite without runs.
    #[must_use]
    pub fn new(name: &str, environment: Environment, setup: Setup, progress: Progress) -> Self {
        let (cases, sweeps) = (Vec::new(), Vec::new());
        Self {
            name: name.to_owned(),
            environment,
            setup,
            progress,
            cases,
            sweeps,
            runs: 0,
        }
    }

    /// Shows in the panel what is done before a case starts.
    pub fn preparing(&mut self, what: &str) {
        self.progress.now(what);
    }

    /// Shows in the panel which case starts. Recording works without this call.
    pub fn starting(&mut self, case: &Case) {
        let repeat = self
            .cases
            .iter()
            .find(|(other, _)| other == case)
            .map_or(0, |(_, r)| r.len());
        let (target, mode, words) = (&case.target, &case.mode.name, case.description());
        self.progress.now(&format!(
            "{target} {mode} · {words} · repeat {}",
            repeat + 1
        ));
    }

    /// Records the next repeat of a case and prints its line.
    ///
    /// # Errors
    /// When the measurement contradicts itself; nothing is recorded then.
    pub fn record(&mut self, case: &Case, measured: Measurement) -> Result<&Run, RecordError> {
        check(case, &measured)?;
        self.runs += 1;
        let position = match self.cases.iter().position(|(other, _)| other == case) {
            Some(position) => position,
            None => {
                self.cases.push((case.clone(), Vec::new()));
                self.cases.len() - 1
            }
        };
        let runs = &mut self.cases[position].1;
        let run = Run::of(case, runs.len() as u32 + 1, self.runs, measured);
        self.progress.line(&lines::benchmark_result(case, &run));
        self.progress.done(&figures(&run));
        runs.push(run);
        Ok(&runs[runs.len() - 1])
    }

    /// Begins a capacity sweep of a case; its rate is that of the options.
    ///
    /// # Errors
    /// When the options make no sense.
    pub fn sweep(
        &mut self,
        case: Case,
        options: SweepOptions,
    ) -> Result<SweepRecorder<'_>, SweepOptionsError> {
        let sweep = Sweep::new(options)?;
        let case = case.rate(options.start_rate);
        self.sweeps.push(SweepResult {
            case,
            options,
            steps: Vec::new(),
            outcome: None,
        });
        Ok(SweepRecorder { suite: self, sweep })
    }

    /// Ends the suite: summaries, comparisons, and a `MODE_SUMMARY` line for each mode.
    #[must_use]
    pub fn finish(mut self) -> Results {
        let mut results = Results {
            schema_version: SCHEMA_VERSION,
            name: self.name,
            generated: Utc::now().display(),
            environment: self.environment,
            setup: self.setup,
            cases: self
                .cases
                .into_iter()
                .map(|(case, runs)| CaseResult::of(case, runs))
                .collect(),
            comparisons: Vec::new(),
            sweeps: self.sweeps,
        };
        results.compare();
        self.progress.finish();
        for line in results
            .groups()
            .iter()
            .filter_map(|cases| lines::mode_summary(cases))
        {
            self.progress.line(&line);
        }
        results
    }
}

/// A sweep being recorded.
pub struct SweepRecorder<'a> {
    suite: &'a mut Suite,
    sweep: Sweep,
}

impl SweepRecorder<'_> {
    /// Returns the rate to run now, `repeats` times. `None` when the sweep is over.
    pub fn attempt(&mut self) -> Option<Attempt> {
        let attempt = self.sweep.attempt()?;
        let result = self.result();
        let (repeats, mode) = (result.options.repeats, result.case.mode.name.clone());
        let phase = attempt.phase.name();
        self.suite.progress.expect(repeats);
        self.suite
            .progress
            .now(&format!("{mode} · {phase} sweep · {}/s", attempt.rate));
        Some(attempt)
    }

    /// Records the repeats of the step, and prints its line.
    ///
    /// # Errors
    /// When the sweep is over, when a measurement contradicts itself, or when none has a throughput.
    pub fn record(&mut self, measured: Vec<Measurement>) -> Result<(), RecordError> {
        let case = self.result().case.clone();
        let Some(attempt) = self.sweep.attempt() else {
            return Err(RecordError::SweepOver { case: case.key() });
        };
        let case = case.rate(attempt.rate);
        let mut runs = Vec::with_capacity(measured.len());
        for measured in measured {
            check(&case, &measured)?;
            let repeat = runs.len() as u32 + 1;
            runs.push(Run::of(&case, repeat, repeat, measured));
        }
        let summary = Summary::of(&case, &runs);
        let observed = summary.mean(Metric::ObservedRate);
        // Almost no messages observed is a finding: the rate was too high. No measured rate is a
        // mistake.
        let silent = || {
            summary
                .get(Metric::ObservedMessages)
                .is_some_and(|count| count.max <= 1.0)
        };
        let observed = observed.or_else(|| silent().then_some(0.0));
        let Some(seen) = observed.and_then(|observed| self.sweep.observe(observed)) else {
            return Err(RecordError::NoThroughput { case: case.key() });
        };
        let step = SweepStep {
            step: attempt.step,
            phase: attempt.phase,
            rate: attempt.rate,
            gain_percent: seen.gain_percent,
            improved: seen.improved,
            summary,
            runs,
        };
        self.suite.progress.line(&lines::sweep_step(&case, &step));
        step.runs
            .iter()
            .for_each(|run| self.suite.progress.done(&figures(run)));
        self.result().steps.push(step);
        if let Some(outcome) = self.sweep.outcome() {
            self.result().outcome = Some(outcome);
            if let Some(line) = lines::capacity(self.result()) {
                self.suite.progress.line(&line);
            }
        }
        Ok(())
    }

    fn result(&mut self) -> &mut SweepResult {
        let last = self.suite.sweeps.len() - 1;
        &mut self.suite.sweeps[last]
    }
}

fn check(case: &Case, measured: &Measurement) -> Result<(), RecordError> {
    measured
        .check()
        .map_err(|source| RecordError::Contradiction {
            case: case.key(),
            source,
        })
}

/// Formats the last run in a few words for the panel.
fn figures(run: &Run) -> String {
    let metrics = [(Metric::ObservedRate, ""), (Metric::LatencyP99, "p99 ")];
    let words = metrics.into_iter().filter_map(|(metric, name)| {
        Some(format!(
            "{name}{}",
            human(run.metrics.get(metric)?, metric.unit())
        ))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Reasons why a measurement was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The measurement contradicts itself.
    #[error("the measurement of {case} contradicts itself: {source}")]
    Contradiction {
        /// Key of the case.
        case: String,
        /// The contradiction.
        source: MeasurementError,
    },
    /// The sweep already has its outcome.
    #[error("the sweep of {case} is over")]
    SweepOver {
        /// Key of the case.
        case: String,
    },
    /// The sweep needs a throughput to choose the next rate.
    #[error("the throughput of {case} was not measured")]
    NoThroughput {
        /// Key of the case.
        case: String,
    },
}

#[cfg(test)]
mod tests;

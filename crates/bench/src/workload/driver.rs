//! Runs a benchmark. A [`Workload`] says which cases it has and measures one repeat.

use crate::measurement::Measurement;
use crate::model::{Case, Environment, Results, Setup};
use crate::plan;
use crate::progress::{Progress, Show};
use crate::suite::Suite;
use crate::workload::error::WorkloadError;

/// A benchmark: its cases on all targets, with the processes that they share.
pub trait Workload {
    /// The name in results.
    const NAME: &'static str;

    /// Returns the cases in the order of the report.
    fn cases(&self) -> Vec<Case>;

    /// Returns the number of runs of each case.
    fn repeats(&self) -> u32;

    /// Describes the benchmark.
    fn setup(&self) -> Setup;

    /// Adds what the benchmark knows of its environment.
    fn environment(&self, environment: Environment) -> Environment {
        environment
    }

    /// Runs one repeat of a case, which has this position in [`Workload::cases`].
    ///
    /// # Errors
    /// When a process fails.
    fn measure(&mut self, position: usize, case: &Case) -> Result<Measurement, WorkloadError>;

    /// Runs what follows the cases, such as a sweep.
    ///
    /// # Errors
    /// When a process fails.
    fn finish(&mut self, suite: &mut Suite) -> Result<(), WorkloadError> {
        let _ = suite;
        Ok(())
    }

    /// Returns notes that are known after the runs.
    fn notes(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Changes or adds comparisons.
    fn compare(&self, results: &mut Results) {
        let _ = results;
    }
}

/// Runs every case of a benchmark, the repeats of all cases interleaved.
///
/// # Errors
/// When a process fails. A message that fails is counted, not an error.
pub fn run<W: Workload>(
    mut workload: W,
    environment: Environment,
    show: Show,
) -> Result<Results, WorkloadError> {
    let (cases, repeats) = (workload.cases(), workload.repeats());
    let environment = workload.environment(environment);
    let progress = Progress::new(cases.len() as u32 * repeats, show);
    let mut suite = Suite::new(W::NAME, environment, workload.setup(), progress);
    for (position, _) in plan::interleaved(cases.len(), repeats) {
        let case = &cases[position];
        suite.starting(case);
        let measured = workload.measure(position, case)?;
        suite.record(case, measured)?;
    }
    workload.finish(&mut suite)?;
    let mut results = suite.finish();
    results.setup.notes.extend(workload.notes());
    workload.compare(&mut results);
    Ok(results)
}

/// Returns each of our cases, followed by the same on other targets.
#[must_use]
pub fn with_rivals(cases: Vec<Case>, targets: impl Fn(&Case) -> Vec<&'static str>) -> Vec<Case> {
    let mut all = Vec::new();
    for case in cases {
        let targets = targets(&case);
        all.push(case.clone());
        all.extend(targets.into_iter().map(|target| Case {
            target: target.to_owned(),
            ..case.clone()
        }));
    }
    all
}

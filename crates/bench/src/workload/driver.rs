//! Runs a benchmark. A [`Workload`] says which cases it has and measures one repeat.

use crate::measurement::Measurement;
use crate::model::{Case, Environment, Results, Setup};
use crate::plan;
use crate::progress::{Progress, Show};
use crate::suite::Suite;
use crate::workload::error::WorkloadError;
use crate::workload::memory::MemoryFill;

/// Runs of a warm-up at most.
const WARMUPS_MAX: u32 = 5;

/// A warm-up ends with a run that completes at most this multiple of the messages of the run before.
const WARMUP_GAIN: f64 = 1.1;

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

    /// Returns whether a case, which has this position in [`Workload::cases`], is repeated until it gets no
    /// faster before its first repeat is recorded: a Java virtual machine compiles a program during its first
    /// seconds under a load.
    fn has_warmup(&self, position: usize) -> bool {
        let _ = position;
        false
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

/// How benchmarks run: what is known of the machine, and what happens beside the measurements.
#[derive(Debug)]
pub struct Runner {
    /// Machine, versions and command, for the results.
    pub environment: Environment,
    /// The progress that is shown.
    pub show: Show,
    /// Fills free memory before each run.
    pub fill: Option<MemoryFill>,
}

impl Runner {
    /// Runs every case of a benchmark, the repeats of all cases interleaved.
    ///
    /// # Errors
    /// When a process fails. A message that fails is counted, not an error.
    pub fn run<W: Workload>(self, mut workload: W) -> Result<Results, WorkloadError> {
        let (cases, repeats) = (workload.cases(), workload.repeats());
        let environment = workload.environment(self.environment);
        let progress = Progress::new(cases.len() as u32 * repeats, self.show);
        let mut suite = Suite::new(W::NAME, environment, workload.setup(), progress);
        let mut fill = self.fill;
        let mut measure = |workload: &mut W, suite: &mut Suite, position| {
            if let Some(fill) = &mut fill {
                suite.preparing("free memory is filled");
                fill.fill()?;
            }
            suite.starting(&cases[position]);
            workload.measure(position, &cases[position])
        };
        for (position, repeat) in plan::interleaved(cases.len(), repeats) {
            if repeat == 1 && workload.has_warmup(position) {
                warm_up(|| measure(&mut workload, &mut suite, position))?;
            }
            let measured = measure(&mut workload, &mut suite, position)?;
            suite.record(&cases[position], measured)?;
        }
        workload.finish(&mut suite)?;
        let mut results = suite.finish();
        results.setup.notes.extend(workload.notes());
        workload.compare(&mut results);
        Ok(results)
    }
}

/// Runs a case until it gets no faster, or often enough.
fn warm_up(
    mut measure: impl FnMut() -> Result<Measurement, WorkloadError>,
) -> Result<(), WorkloadError> {
    let mut before = measure()?.completed;
    for _ in 1..WARMUPS_MAX {
        let completed = measure()?.completed;
        if completed as f64 <= before as f64 * WARMUP_GAIN {
            break;
        }
        before = completed;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Arrivals;
    use crate::model::{Area, Mode};

    /// Each run sends one message more than the one before.
    #[derive(Default)]
    struct Counting {
        runs: u64,
    }

    impl Workload for Counting {
        const NAME: &'static str = "counting";

        fn cases(&self) -> Vec<Case> {
            let case = |target| Case::new(target, Area::Agent, Mode::WRITE);
            vec![case("telpher"), case("java")]
        }

        fn repeats(&self) -> u32 {
            2
        }

        fn setup(&self) -> Setup {
            Setup::default()
        }

        fn has_warmup(&self, position: usize) -> bool {
            position == 1
        }

        fn measure(&mut self, _: usize, _: &Case) -> Result<Measurement, WorkloadError> {
            self.runs += 1;
            Ok(Measurement {
                sent: self.runs,
                completed: self.runs,
                window_ns: 1_000_000_000,
                completions: Some(Arrivals {
                    first_ns: 0,
                    last_ns: 1_000_000_000,
                }),
                ..Measurement::default()
            })
        }
    }

    #[test]
    fn warmup_ends_when_runs_get_no_faster() {
        let runs = |completed: &[u64]| {
            let mut left = completed.iter();
            let run = || {
                Ok(Measurement {
                    completed: *left.next().unwrap(),
                    ..Measurement::default()
                })
            };
            warm_up(run).unwrap();
            completed.len() - left.len()
        };
        assert_eq!(runs(&[100, 300, 320, 900]), 3);
        assert_eq!(runs(&[100, 90, 300]), 2);
        assert_eq!(runs(&[0, 0, 0]), 2);
        assert_eq!(runs(&[1, 2, 4, 8, 16, 32]), WARMUPS_MAX as usize);
    }

    #[test]
    fn warmup_of_a_case_is_not_recorded() {
        let runner = Runner {
            environment: Environment::default(),
            show: Show::Quiet,
            fill: None,
        };
        let results = runner.run(Counting::default()).unwrap();
        let sent = |case: usize| {
            let runs = results.cases[case].runs.iter();
            runs.map(|run| run.measured.as_ref().unwrap().sent)
                .collect::<Vec<_>>()
        };
        // Each run of the warm-up is faster. The second round runs backwards.
        assert_eq!((sent(0), sent(1)), (vec![1, 9], vec![7, 8]));
    }
}

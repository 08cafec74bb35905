//! `--kill-9-check`: acknowledged data survives kills of the node.

use std::path::Path;

use bench::workload::error::WorkloadError;
use bench::workload::surroundings::Surroundings;
use checks::kill::Kills;
use meter::clock::now_ns;
use serde::Serialize;

use super::outcome::{Count, Outcome, count_table, failure};
use console::output::note;
use console::{Exit, Failure};

/// The arguments of a check that kills a node.
#[derive(Debug, clap::Args)]
pub(super) struct KillArgs {
    /// Kill a node this number of times under load, and read all acknowledged data back
    #[arg(long = "kill-9-check", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    kill_9_check: Option<u32>,

    /// Seed of the times of the kills [default: random]
    #[arg(long, value_name = "N", requires = "kill_9_check")]
    seed: Option<u64>,
}

impl KillArgs {
    /// Returns the kills on a disk; `None` if the check is not requested.
    pub(super) fn kills(&self, directory: &Path) -> Option<Kills> {
        Some(Kills {
            count: self.kill_9_check?,
            seed: self.seed.unwrap_or_else(now_ns),
            directory: directory.to_owned(),
        })
    }
}

/// The result of a check that kills a node.
pub(super) trait Report: Serialize {
    /// True if the stored data is the acknowledged data.
    fn is_clean(&self) -> bool;

    /// The counts of the report.
    fn rows(&self) -> Vec<Count>;
}

/// Runs a check, prints its report, and fails if it has found an error.
pub(super) fn run_check<R: Report>(
    outcome: &Outcome,
    kills: &Kills,
    check: impl FnOnce(&Surroundings, &mut dyn FnMut(u32)) -> Result<R, WorkloadError>,
) -> Result<(), Failure> {
    let Kills { count, seed, .. } = *kills;
    let is_quiet = outcome.is_quiet();
    let mut progress = |done: u32| {
        if !is_quiet && (done.is_multiple_of(10) || done == count) {
            note(&format!("killed {done} times of {count}"));
        }
    };
    let report = check(&outcome.surroundings()?, &mut progress);
    let report = report.map_err(|error| failure(error).hint(format!("the seed was {seed}")))?;
    outcome.print(&report, &count_table(&report.rows()))?;
    match report.is_clean() {
        true => Ok(()),
        false => {
            let message = "the stored data differs from the acknowledged data";
            let hint = format!("--seed {seed} repeats the times of the kills");
            Err(Failure::new(Exit::Failed, message).hint(hint))
        }
    }
}

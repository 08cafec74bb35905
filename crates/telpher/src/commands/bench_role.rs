//! `telpher bench-role`, hidden in help: a process that a benchmark starts.

use bench::workload::roles;

use crate::failure::{Exit, Failure};

/// Run a role of a benchmark
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The role, as JSON
    spec: String,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    roles::play(&args.spec).map_err(|failure| Failure::new(Exit::Failed, failure))
}

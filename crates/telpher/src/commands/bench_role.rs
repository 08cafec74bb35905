//! `telpher bench-role`, not shown in help: a process that a benchmark starts to play a part.

use bench::workload::role;

use crate::failure::{Exit, Failure};

/// Play a part in a benchmark
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do, as JSON
    spec: String,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    role::play(&args.spec).map_err(|failure| Failure::new(Exit::Failed, failure))
}

//! `telpher bench report`: prints the reports of stored results.

use std::path::PathBuf;

use console::Failure;

use super::outcome::{Style, read};

const EXAMPLES: &str = "\
Examples:
  telpher bench report bench-out/20260626T080147Z-agent/results.json --style slim
  telpher bench report bench/results/rpc-same-cpu/results.json.gz --style uvrpc";

/// Print the reports of a results.json
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The results.json of a benchmark
    results: PathBuf,

    /// Reports to print
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "STYLE",
        default_value = "table"
    )]
    style: Vec<Style>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    Style::print(&args.style, &read(&args.results)?)
}

//! `telpher bench growth`: cost of a node by the number of its items and the length of its log.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bench::growth::{Dimension, GIGABYTE, Growth};
use bench::output::Output;
use checks::growth::{self, Plan};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use meter::clock::Utc;

use super::outcome::{MemoryArgs, check, environment, failure, print_report, steps, surroundings};
use crate::settings::parse_duration;
use console::Failure;
use console::output::note;

const ABOUT: &str = "\
Measure how the cost of a node grows with what it holds.

Items grow in steps of ten. Each step has a node of its own: it creates the items with a message \
each, leaves them alone, reads the memory of the node, and then sends messages of 64 bytes to all \
items in scattered order, 128 in flight (16 for groups), as fast as possible.

The log grows on one data directory to 1, 2, 5, 10 and 20 GB. After each step the node is killed and \
started; measured are the time until it serves, the first fetch at the beginning and at the end of \
the log, and the time until compaction has nothing left to do.

A step that does not fit into a time limit, the free disk or the limit of file descriptors is left \
out, with the reason.";

const EXAMPLES: &str = "\
Examples:
  telpher bench growth                                all curves, at most 15 minutes
  telpher bench growth --of topics,groups --max 1000  two curves, up to 1,000 of each
  telpher bench growth --of log --log-max 5 --dir /mnt/disk
                                                      a log of up to 5 GB on another disk

The directory --out gets results.json, tables in Markdown, and plots.";

/// Measure CPU and memory by the number of connections, topics, groups, mailboxes, conversations and
/// buckets, and times by the length of the log
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Curves to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "DIMENSION")]
    of: Vec<DimensionArg>,

    /// Maximum number of items of every kind [default: connections 10000, topics, groups and
    /// mailboxes 100000, conversations and buckets 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max: Option<u64>,

    /// Maximum length of the log in GB
    #[arg(long, value_name = "GB", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    log_max: u64,

    /// Bytes in a GB of the log, for tests
    #[arg(long, value_name = "BYTES", default_value_t = GIGABYTE, hide = true)]
    log_unit: u64,

    /// Length of the load of one repeat
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    duration: Duration,

    /// Repeats of the load in each step
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,

    /// Idle time before memory is measured: a node gives unused memory back within ten seconds
    #[arg(long, value_name = "DURATION", default_value = "11s", value_parser = parse_duration)]
    rest: Duration,

    /// Time limit of one step
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = parse_duration)]
    step_limit: Duration,

    /// Time limit of the whole measurement
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = parse_duration)]
    limit: Duration,

    /// Directory on the disk to measure; the data in it is removed at the end
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Directory for the results; each run gets a subdirectory
    #[arg(long, value_name = "DIR", default_value = "bench-out")]
    out: PathBuf,

    /// Print the results as JSON
    #[arg(long)]
    json: bool,

    /// Print less progress
    #[arg(long, short)]
    quiet: bool,

    /// Fail if any step is flagged
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    memory: MemoryArgs,

    /// Commit that is measured, for the results
    #[arg(long, value_name = "HASH", hide = true)]
    commit: Option<String>,
}

/// A dimension on the command line, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DimensionArg(Dimension);

impl ValueEnum for DimensionArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [DimensionArg; 7] = [
            DimensionArg(Dimension::Connections),
            DimensionArg(Dimension::Topics),
            DimensionArg(Dimension::Groups),
            DimensionArg(Dimension::Mailboxes),
            DimensionArg(Dimension::Conversations),
            DimensionArg(Dimension::Buckets),
            DimensionArg(Dimension::Log),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let output = Output::create(&args.out, "growth", Utc::now()).map_err(failure)?;
    let environment = environment(args.commit.as_deref());
    let surroundings = surroundings(None)?;
    if let Some(mut fill) = args.memory.open()? {
        fill.fill().map_err(failure)?;
    }
    let found = growth::run(&surroundings, &args.plan(), environment, steps(args.quiet));
    let found = found.map_err(failure)?;
    write(&output, &found)?;
    print_report(args.json, &found, &found.terminal())?;
    note(&format!("results: {}", output.directory().display()));
    match args.strict {
        true => check(
            &found.flagged(),
            "measure on a machine without other load, or with more --repeats",
        ),
        false => Ok(()),
    }
}

impl Args {
    fn plan(&self) -> Plan {
        let of = match self.of.is_empty() {
            true => Dimension::ALL.to_vec(),
            false => self.of.iter().map(|one| one.0).collect(),
        };
        Plan {
            of,
            items_max: self.max,
            log_max: self.log_max,
            log_unit: self.log_unit,
            window: self.duration,
            repeats: self.repeats,
            rest: self.rest,
            step_limit: self.step_limit,
            limit: self.limit,
            directory: self.dir.clone(),
        }
    }
}

/// Writes results, tables and plots.
fn write(output: &Output, found: &Growth) -> Result<(), Failure> {
    let json = serde_json::to_vec_pretty(found).map_err(failure)?;
    let plots = found.pictures();
    let plots = plots
        .into_iter()
        .map(|plot| (plot.file, plot.svg.into_bytes()));
    let files = [
        ("results.json".to_owned(), json),
        ("tables.md".to_owned(), found.markdown().into_bytes()),
    ];
    for (name, bytes) in files.into_iter().chain(plots) {
        let path = output.directory().join(name);
        fs::write(&path, bytes)
            .map_err(|error| failure(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}

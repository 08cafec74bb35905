//! Common parts of all benchmarks: placement of processes, and output of results.

use std::path::{Path, PathBuf};

use bench::flags;
use bench::measurement::LOST;
use bench::model::{Environment, Results};
use bench::output::Output;
use bench::progress::Show;
use bench::report;
use bench::workload::driver::Runner;
use bench::workload::error::WorkloadError;
use bench::workload::memory::MemoryFill;
use bench::workload::placement::Placement;
use bench::workload::surroundings::{OURS, Surroundings};
use clap::ValueEnum;
use meter::clock::Utc;
use serde::Serialize;

use console::output::{Format, note, print, print_text};
use console::{Exit, Failure};

/// The arguments for the output of results.
#[derive(Debug, clap::Args)]
pub(super) struct Outcome {
    /// Directory for the results; each run of a benchmark gets a subdirectory
    #[arg(long, value_name = "DIR", default_value = "bench-out")]
    out: PathBuf,

    /// Print the results as JSON
    #[arg(long, conflicts_with = "style")]
    json: bool,

    /// Print less progress
    #[arg(long, short)]
    quiet: bool,

    /// Fail if any figure is flagged
    #[arg(long)]
    strict: bool,

    /// Reports to print [default: tables; for calls also every run and the speed-ups]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STYLE")]
    style: Vec<Style>,

    /// Also measure the floors and other systems in this directory
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,

    #[command(flatten)]
    memory: MemoryArgs,

    /// Commit that is measured, for the results
    #[arg(long, value_name = "HASH", hide = true)]
    commit: Option<String>,
}

/// The memory of the machine before a run.
#[derive(Debug, clap::Args)]
pub(super) struct MemoryArgs {
    /// Fill free memory with cached bytes of this file before each run; it is made if it is missing.
    /// In a virtual machine whose host takes free memory back, writing files is several times slower
    /// after others were deleted
    #[arg(long, value_name = "FILE")]
    fill_memory: Option<PathBuf>,
}

impl MemoryArgs {
    /// Returns the filler of memory, if it is wanted.
    pub(super) fn open(&self) -> Result<Option<MemoryFill>, Failure> {
        let path = self.fill_memory.as_deref();
        path.map(MemoryFill::open).transpose().map_err(failure)
    }
}

/// Fails if `misses` is not empty.
pub(super) fn check(misses: &[String], hint: &str) -> Result<(), Failure> {
    if misses.is_empty() {
        return Ok(());
    }
    let message = format!("the check of the results failed\n  {}", misses.join("\n  "));
    Err(Failure::new(Exit::Failed, message).hint(hint))
}

/// A row of a report of counts: its name, the count, and its description.
pub(super) type Count = (&'static str, u64, &'static str);

/// Formats a report of counts as a table.
pub(super) fn count_table(rows: &[Count]) -> String {
    let line = |(name, count, words): &Count| {
        let line = format!("{name:<12} {count:>12}  {words}");
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A style of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Style {
    /// Tables for a terminal
    Table,
    /// One page of Markdown with everything
    Markdown,
    /// Progress lines, summary and technical report in the style of the SLIM suite
    Slim,
    /// Every run of the call modes, averages and speed-ups in the style of UVRPC
    Uvrpc,
    /// Throughput, CPU and memory of a durable store in the style of FleetLM
    Fleetlm,
    /// Answers by status, latencies, endpoints and thresholds in the style of the rate limiter
    Limiter,
    /// Throughput, bandwidth and latencies per ack mode in the style of Chronik
    Chronik,
    /// All styles
    All,
}

/// The CPUs on which the processes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PlacementArg {
    /// Chosen by the kernel
    Unpinned,
    /// All on CPU 0
    SameCpu,
    /// The sender on CPU 0, all others on CPU 1
    TwoCpus,
}

impl From<PlacementArg> for Placement {
    fn from(place: PlacementArg) -> Self {
        match place {
            PlacementArg::Unpinned => Self::Unpinned,
            PlacementArg::SameCpu => Self::SameCpu,
            PlacementArg::TwoCpus => Self::TwoCpus,
        }
    }
}

impl Style {
    /// Prints the reports of the styles, each once.
    pub(super) fn print(styles: &[Self], results: &Results) -> Result<(), Failure> {
        let wanted = |style: &report::Style| {
            let name = match style {
                report::Style::Table => Self::Table,
                report::Style::Markdown => Self::Markdown,
                report::Style::Slim => Self::Slim,
                report::Style::Uvrpc => Self::Uvrpc,
                report::Style::Fleetlm => Self::Fleetlm,
                report::Style::Limiter => Self::Limiter,
                report::Style::Chronik => Self::Chronik,
            };
            styles.contains(&name) || styles.contains(&Self::All)
        };
        let texts: Vec<String> = report::Style::ALL
            .iter()
            .filter(|style| wanted(style))
            .map(|style| style.render(results))
            .collect();
        print_text(&texts.join("\n"))
    }
}

impl Outcome {
    /// Returns a function that prints the steps of a check.
    pub(super) fn steps(&self) -> impl FnMut(&str) + use<> {
        steps(self.quiet)
    }

    /// Prints the report of a check: as text, or as JSON if requested.
    pub(super) fn print(&self, report: &impl Serialize, text: &str) -> Result<(), Failure> {
        print_report(self.json, report, text)
    }

    /// Runs a benchmark, and writes and prints its results. `styles` are the default styles.
    pub(super) fn of(
        &self,
        name: &str,
        styles: &[Style],
        suite: impl FnOnce(&Surroundings, Runner) -> Result<Results, WorkloadError>,
    ) -> Result<(), Failure> {
        let surroundings = self.surroundings()?;
        let output = Output::create(&self.out, name, Utc::now()).map_err(failure)?;
        let runner = Runner {
            environment: self.environment(),
            show: Show::fitting(self.quiet),
            fill: self.memory.open()?,
        };
        let results = suite(&surroundings, runner).map_err(failure)?;
        output.write(&results).map_err(failure)?;
        match (self.json, self.style.is_empty()) {
            (true, _) => {
                let json = serde_json::to_string_pretty(&results).map_err(failure)?;
                print_text(&format!("{json}\n"))?;
            }
            (false, true) => Style::print(styles, &results)?,
            (false, false) => Style::print(&self.style, &results)?,
        }
        note(&format!("results: {}", output.directory().display()));
        judge(&results)?;
        match self.strict {
            true => flags::strict(&results).map_err(failure),
            false => Ok(()),
        }
    }

    /// True if progress is not printed.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The executables of the processes.
    pub(super) fn surroundings(&self) -> Result<Surroundings, Failure> {
        surroundings(self.peers.as_deref())
    }

    fn environment(&self) -> Environment {
        environment(self.commit.as_deref())
    }
}

/// Returns a function that prints the steps of a check.
pub(super) fn steps(is_quiet: bool) -> impl FnMut(&str) + use<> {
    move |step| {
        if !is_quiet {
            note(step);
        }
    }
}

/// Prints the report of a check: as text, or as JSON.
pub(super) fn print_report(json: bool, report: &impl Serialize, text: &str) -> Result<(), Failure> {
    let value = serde_json::to_value(report).map_err(failure)?;
    print(Format { json }, &value, text)
}

/// Returns the executables of the processes.
pub(super) fn surroundings(peers: Option<&Path>) -> Result<Surroundings, Failure> {
    Ok(Surroundings {
        executable: std::env::current_exe().map_err(failure)?,
        peers: peers.map(Path::to_owned),
    })
}

/// Gathers machine, versions and command. `commit` is the measured commit, if it is given.
pub(super) fn environment(commit: Option<&str>) -> Environment {
    // The hidden flag is not part of the command that a user would type.
    let mut arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|one| one == "--commit") {
        arguments.drain(at..(at + 2).min(arguments.len()));
    }
    if let Some(program) = arguments.first_mut() {
        "telpher".clone_into(program);
    }
    let environment = Environment::gather(arguments).version(OURS, env!("CARGO_PKG_VERSION"));
    match commit.or(option_env!("TELPHER_COMMIT")) {
        Some(commit) => environment.commit(commit),
        None => environment,
    }
}

/// Fails if a message of a Telpher case failed. Losses of other systems are only in the tables, and
/// so are messages that a full subscriber dropped in an unpaced case, because that loss is the
/// measured quantity.
fn judge(results: &Results) -> Result<(), Failure> {
    let is_ours = |target: &str| target.split('-').next() == Some(OURS);
    let cases = results.cases.iter();
    let ours = cases.filter(|one| is_ours(&one.case.target));
    let failed: Vec<String> = ours
        .flat_map(|one| {
            let counts = |kind: &str| kind != LOST || one.case.paced();
            let kinds = one
                .summary
                .errors
                .iter()
                .filter(move |(kind, _)| counts(kind));
            kinds.map(move |(kind, count)| format!("{}: {count} × {kind}", one.case.key()))
        })
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => {
            let message = format!("messages failed\n  {}", failed.join("\n  "));
            Err(Failure::new(Exit::Failed, message).hint(
                "the figures exclude them; see `telpher explain` for the codes, and try a lower load",
            ))
        }
    }
}

/// Converts an error of the `bench` crate, whose `hint:` lines become hints.
pub(super) fn failure(error: impl std::fmt::Display) -> Failure {
    let text = error.to_string();
    let message: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with("hint: "))
        .collect();
    let hints = text.lines().filter_map(|line| line.strip_prefix("hint: "));
    let base = Failure::new(Exit::Failed, message.join("\n"));
    hints.fold(base, Failure::hint)
}

/// Reads a `results.json`, compressed or not.
pub(super) fn read(path: &Path) -> Result<Results, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::new(
            Exit::NotFound,
            format!("cannot read {}: {error}", path.display()),
        )
        .hint("a benchmark writes results.json to its subdirectory of bench-out")
    })?;
    Results::from_bytes(&bytes).map_err(|error| {
        let base = failure(format!("{}: {error}", path.display()));
        Failure {
            exit: Exit::Usage,
            ..base
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_separated_from_the_message() {
        let base = failure("cannot start: no\nnot at all\nhint: try again\nhint: or not");
        assert_eq!(base.errors[0].message, "cannot start: no\nnot at all");
        assert_eq!(base.errors[0].hints, ["try again", "or not"]);
    }
}

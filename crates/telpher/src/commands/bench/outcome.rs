//! What all benchmarks have in common: where they run, and where their results go.

use std::path::{Path, PathBuf};

use bench::clock::Utc;
use bench::flags;
use bench::model::{Environment, Results};
use bench::output::Output;
use bench::progress::Show;
use bench::report;
use bench::workload::agent::LOST;
use bench::workload::{OURS, Placement, Surroundings, WorkloadError};
use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::output::{Format, note, print, print_text};

/// Where results go.
#[derive(Debug, clap::Args)]
pub(super) struct Outcome {
    /// Directory for the results; each suite gets one of its own in it
    #[arg(long, value_name = "DIR", default_value = "bench-out")]
    out: PathBuf,

    /// Print the results as JSON, for programs
    #[arg(long, conflicts_with = "style")]
    json: bool,

    /// No progress, only the live lines
    #[arg(long, short)]
    quiet: bool,

    /// Fail when any figure is flagged
    #[arg(long)]
    strict: bool,

    /// Which reports to print; unless given, tables, and for calls every run and the speed-ups
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STYLE")]
    style: Vec<Style>,

    /// Run floors and peers from this directory beside ours
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,

    /// The commit that is measured, for the results
    #[arg(long, value_name = "HASH", hide = true)]
    commit: Option<String>,
}

/// Fails if anything was missed.
pub(super) fn check(misses: &[String], hint: &str) -> Result<(), Failure> {
    if misses.is_empty() {
        return Ok(());
    }
    let message = format!("not as it must be\n  {}", misses.join("\n  "));
    Err(Failure::new(Exit::Failed, message).hint(hint))
}

/// A row of a report that is counts: its name, the count, and what it is.
pub(super) type Count = (&'static str, u64, &'static str);

/// Such a report for people.
pub(super) fn count_table(rows: &[Count]) -> String {
    let line = |(name, count, words): &Count| {
        let line = format!("{name:<12} {count:>12}  {words}");
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Style {
    /// Tables for a terminal
    Table,
    /// One page of Markdown with everything
    Markdown,
    /// Live lines, summary and technical report as the SLIM suite has them
    Slim,
    /// Every run of the call modes, averages and speed-ups, as UVRPC reports them
    Uvrpc,
    /// Throughput, CPU and memory of a durable store, as FleetLM reports them
    Fleetlm,
    /// Answers by status, latencies, endpoints and thresholds, as the rate limiter's report has them
    Limiter,
    /// Throughput, bandwidth and latencies for each ack, as Chronik reports them
    Chronik,
    /// All of them
    All,
}

/// Where the processes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Place {
    /// Wherever the kernel puts them
    Unpinned,
    /// All on CPU 0
    SameCpu,
    /// The sender on CPU 0, all others on CPU 1
    TwoCpus,
}

impl From<Place> for Placement {
    fn from(place: Place) -> Self {
        match place {
            Place::Unpinned => Self::Unpinned,
            Place::SameCpu => Self::SameCpu,
            Place::TwoCpus => Self::TwoCpus,
        }
    }
}

impl Style {
    /// What is printed, without repetition.
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
    /// Tells how far a check is that kills a node.
    pub(super) fn killed(&self, done: u32, kills: u32) {
        if !self.is_quiet() && (done.is_multiple_of(10) || done == kills) {
            note(&format!("killed {done} times of {kills}"));
        }
    }

    /// Prints what such a check has found, and fails if it is not as it must be.
    pub(super) fn judged(
        &self,
        report: &impl Serialize,
        rows: &[Count],
        is_clean: bool,
        seed: u64,
    ) -> Result<(), Failure> {
        let value = serde_json::to_value(report).map_err(failure)?;
        print(self.format(), &value, &count_table(rows))?;
        match is_clean {
            true => Ok(()),
            false => {
                let message = "what was acknowledged is not what is there";
                let hint = format!("the moments of the kills are those of --seed {seed}");
                Err(Failure::new(Exit::Failed, message).hint(hint))
            }
        }
    }

    /// Runs a suite and puts its results everywhere they belong. `styles` are printed unless others
    /// were asked for.
    pub(super) fn of(
        &self,
        name: &str,
        styles: &[Style],
        suite: impl FnOnce(&Surroundings, Environment, Show) -> Result<Results, WorkloadError>,
    ) -> Result<(), Failure> {
        let surroundings = self.surroundings()?;
        let output = Output::create(&self.out, name, Utc::now()).map_err(failure)?;
        let show = Show::fitting(self.quiet);
        let results = suite(&surroundings, self.environment(), show).map_err(failure)?;
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

    /// How a result is printed that is none of a suite.
    pub(super) fn format(&self) -> Format {
        Format { json: self.json }
    }

    /// Whether progress is told.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Where to run what takes part.
    pub(super) fn surroundings(&self) -> Result<Surroundings, Failure> {
        Ok(Surroundings {
            executable: std::env::current_exe().map_err(failure)?,
            peers: self.peers.clone(),
        })
    }

    fn environment(&self) -> Environment {
        // Not part of what one would type.
        let mut arguments: Vec<String> = std::env::args().collect();
        if let Some(at) = arguments.iter().position(|one| one == "--commit") {
            arguments.drain(at..(at + 2).min(arguments.len()));
        }
        if let Some(program) = arguments.first_mut() {
            "telpher".clone_into(program);
        }
        let environment = Environment::gather(arguments).version(OURS, env!("CARGO_PKG_VERSION"));
        match self.commit.as_deref().or(option_env!("TELPHER_COMMIT")) {
            Some(commit) => environment.commit(commit),
            None => environment,
        }
    }
}

/// Fails when a message of ours failed: what others lose is in the tables, and so is what a full
/// subscriber did not take of a flood, which is the answer to what was asked.
fn judge(results: &Results) -> Result<(), Failure> {
    let ours = results.cases.iter().filter(|one| one.case.target == OURS);
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
                "the figures leave them out; `telpher explain` says what the codes mean, and less \
                 load tells whether it was the load",
            ))
        }
    }
}

/// An error of the bench, whose last lines may say what to do.
pub(super) fn failure(error: impl std::fmt::Display) -> Failure {
    let text = error.to_string();
    let message: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with("hint: "))
        .collect();
    let hints = text.lines().filter_map(|line| line.strip_prefix("hint: "));
    let told = Failure::new(Exit::Failed, message.join("\n"));
    hints.fold(told, Failure::hint)
}

/// Reads a `results.json`.
pub(super) fn read(path: &Path) -> Result<Results, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            Exit::NotFound,
            format!("cannot read {}: {error}", path.display()),
        )
        .hint("a suite leaves results.json in its directory in bench-out")
    })?;
    Results::from_json(&text).map_err(|error| {
        let told = failure(format!("{}: {error}", path.display()));
        Failure {
            exit: Exit::Usage,
            ..told
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_told_apart_from_what_happened() {
        let told = failure("cannot start: no\nnot at all\nhint: try again\nhint: or not");
        assert_eq!(told.errors[0].message, "cannot start: no\nnot at all");
        assert_eq!(told.errors[0].hints, ["try again", "or not"]);
    }
}

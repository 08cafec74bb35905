//! `telpher bench kafka --idle`.

use std::path::Path;
use std::time::Duration;

use bench::workload::kafka::idle::{self, Idle, IdleReport};
use model::ByteSize;

use super::super::outcome::{Outcome, failure};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::settings::parse_duration;

/// Partitions and groups that nobody uses.
#[derive(Debug, clap::Args)]
pub(super) struct IdleArgs {
    /// Make a topic with so many partitions, leave it alone, kill the node and start it again
    #[arg(long, value_name = "PARTITIONS", conflicts_with = "bootstrap_servers",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) idle: Option<u32>,

    /// Groups with offsets beside it
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "idle")]
    idle_groups: u32,

    /// Groups with a member that stays connected
    #[arg(long, value_name = "N", default_value_t = 100, requires = "idle",
        value_parser = clap::value_parser!(u32).range(..=10_000))]
    idle_members: u32,

    /// Messages that are written before the node is killed, in bytes, such as 5GiB
    #[arg(long, value_name = "SIZE", default_value = "0B", requires = "idle")]
    idle_log: ByteSize,

    /// How long all is left alone before memory is read
    #[arg(long, value_name = "DURATION", default_value = "15s", requires = "idle", value_parser = parse_duration)]
    idle_rest: Duration,

    /// Over which CPU time is read then
    #[arg(long, value_name = "DURATION", default_value = "10s", requires = "idle", value_parser = parse_duration)]
    idle_window: Duration,
}

pub(super) fn run(
    args: &IdleArgs,
    partitions: u32,
    directory: &Path,
    outcome: &Outcome,
) -> Result<(), Failure> {
    let what = Idle {
        partitions,
        groups: args.idle_groups,
        members: args.idle_members,
        log_bytes: args.idle_log.as_u64(),
        rest: args.idle_rest,
        window: args.idle_window,
        directory: directory.to_owned(),
    };
    let surroundings = outcome.surroundings()?;
    let is_quiet = outcome.is_quiet();
    let report = idle::run(&surroundings, &what, |step| {
        if !is_quiet {
            output::note(step);
        }
    });
    let report = report.map_err(failure)?;
    let value = serde_json::to_value(&report).map_err(failure)?;
    output::print(outcome.format(), &value, &text(&report))?;
    match report.is_clean() {
        true => Ok(()),
        false => Err(Failure::new(
            Exit::Failed,
            "what was acknowledged is not what is there after the start",
        )
        .hint("`telpher inspect` says whether the journal is whole")),
    }
}

fn text(report: &IdleReport) -> String {
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
    let one = |figure: f64| format!("{figure:.1}");
    let rows = [
        ("partitions", report.partitions.to_string(), "of a topic"),
        (
            "groups",
            report.groups.to_string(),
            "whose consumers are gone",
        ),
        ("offsets", report.offsets.to_string(), "of each"),
        (
            "members",
            report.members.to_string(),
            "connected, each of a group of its own",
        ),
        ("made in", one(report.make_seconds), "s"),
        (
            "empty",
            mib(report.empty_rss_bytes),
            "MiB of memory of a node that holds nothing",
        ),
        (
            "idle",
            mib(report.idle_rss_bytes),
            "MiB once they were left alone",
        ),
        (
            "CPU",
            one(report.idle_cpu_ms / report.idle_seconds.max(1e-9)),
            "ms a second then",
        ),
        ("log", mib(report.log_bytes), "MiB of messages"),
        ("written in", one(report.log_seconds), "s"),
        (
            "refused",
            report.log_failed.to_string(),
            "messages of it that were not acknowledged",
        ),
        (
            "unfiled",
            mib(report.unfiled_bytes),
            "MiB of the line when the node was killed",
        ),
        (
            "start",
            one(report.start_ms),
            "ms until its doors were open",
        ),
        (
            "first fetch",
            one(report.first_fetch_ms),
            "ms until it was answered",
        ),
        (
            "started",
            mib(report.started_rss_bytes),
            "MiB of memory then",
        ),
        (
            "offsets read",
            report.offsets_read.to_string(),
            "after the start",
        ),
        (
            "wrong",
            report.offsets_wrong.to_string(),
            "of those, not as they were committed",
        ),
        ("acked", report.messages.acked.to_string(), "messages"),
        (
            "lost",
            report.messages.lost.to_string(),
            "of those, not there",
        ),
        (
            "duplicated",
            report.messages.duplicated.to_string(),
            "there more than once",
        ),
        (
            "moved",
            report.messages.moved.to_string(),
            "elsewhere than was said",
        ),
        (
            "damaged",
            report.messages.damaged.to_string(),
            "batches or messages that nobody sent like that",
        ),
        (
            "read",
            mib(report.read_rss_bytes),
            "MiB of memory behind that",
        ),
        ("disk", mib(report.disk_bytes), "MiB"),
    ];
    let line =
        |(name, figure, words): (&str, String, &str)| format!("{name:<14} {figure:>12}  {words}\n");
    rows.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_memory_cpu_and_the_start() {
        let report = IdleReport {
            idle_rss_bytes: 99 << 20,
            idle_seconds: 10.0,
            idle_cpu_ms: 25.0,
            first_fetch_ms: 812.25,
            ..IdleReport::default()
        };
        let text = text(&report);
        for line in [
            "idle                   99.0  MiB once",
            "CPU                     2.5  ms a second",
            "first fetch           812.2  ms until it",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(report.is_clean());
        let wrong = IdleReport {
            offsets_wrong: 1,
            ..report
        };
        assert!(!wrong.is_clean());
    }
}

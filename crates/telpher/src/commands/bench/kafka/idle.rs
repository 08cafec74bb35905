//! `telpher bench kafka --idle`: cost of idle partitions and groups, and a start after a kill.

use std::path::Path;
use std::time::Duration;

use checks::kafka::{self, Idle, IdleReport};
use model::ByteSize;

use super::super::outcome::{Outcome, failure};
use crate::settings::parse_duration;
use console::{Exit, Failure};

/// The arguments of the idle benchmark.
#[derive(Debug, clap::Args)]
pub(super) struct IdleArgs {
    /// Create a topic with this number of partitions, leave it idle, kill and restart the node
    #[arg(long, value_name = "PARTITIONS", conflicts_with = "bootstrap_servers",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) idle: Option<u32>,

    /// Number of groups with offsets and without members
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "idle")]
    idle_groups: u32,

    /// Number of groups with a connected member
    #[arg(long, value_name = "N", default_value_t = 100, requires = "idle",
        value_parser = clap::value_parser!(u32).range(..=10_000))]
    idle_members: u32,

    /// Size of the messages that are written before the kill, such as 5GiB
    #[arg(long, value_name = "SIZE", default_value = "0B", requires = "idle")]
    idle_log: ByteSize,

    /// Idle time before memory is measured
    #[arg(long, value_name = "DURATION", default_value = "15s", requires = "idle", value_parser = parse_duration)]
    idle_rest: Duration,

    /// Time over which CPU time is measured
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
    let report = kafka::run(&surroundings, &what, outcome.steps()).map_err(failure)?;
    outcome.print(&report, &text(&report))?;
    match report.is_clean() {
        true => Ok(()),
        false => Err(Failure::new(
            Exit::Failed,
            "the data after the start differs from the acknowledged data",
        )
        .hint("`telpher inspect` checks the journal")),
    }
}

fn text(report: &IdleReport) -> String {
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
    let one = |figure: f64| format!("{figure:.1}");
    let rows = [
        ("partitions", report.partitions.to_string(), "of a topic"),
        ("groups", report.groups.to_string(), "without members"),
        ("offsets", report.offsets.to_string(), "of each"),
        (
            "members",
            report.members.to_string(),
            "connected, each in its own group",
        ),
        ("created in", one(report.make_seconds), "s"),
        (
            "empty",
            mib(report.empty_rss_bytes),
            "MiB of memory of an empty node",
        ),
        (
            "idle",
            mib(report.idle_rss_bytes),
            "MiB of memory of the idle node",
        ),
        (
            "CPU",
            one(report.idle_cpu_ms / report.idle_seconds.max(1e-9)),
            "ms per second of the idle node",
        ),
        ("log", mib(report.log_bytes), "MiB of messages"),
        ("written in", one(report.log_seconds), "s"),
        (
            "refused",
            report.log_failed.to_string(),
            "messages that were not acknowledged",
        ),
        (
            "unfiled",
            mib(report.unfiled_bytes),
            "MiB of the write-ahead log at the kill",
        ),
        (
            "start",
            one(report.start_ms),
            "ms until the listeners were open",
        ),
        (
            "first fetch",
            one(report.first_fetch_ms),
            "ms until the first fetch was answered",
        ),
        (
            "started",
            mib(report.started_rss_bytes),
            "MiB of memory after the start",
        ),
        (
            "offsets read",
            report.offsets_read.to_string(),
            "after the start",
        ),
        (
            "wrong",
            report.offsets_wrong.to_string(),
            "offsets that differ from the committed ones",
        ),
        ("acked", report.messages.acked.to_string(), "messages"),
        (
            "lost",
            report.messages.lost.to_string(),
            "acknowledged messages that are not stored",
        ),
        (
            "duplicated",
            report.messages.duplicated.to_string(),
            "messages that are stored more than once",
        ),
        (
            "moved",
            report.messages.moved.to_string(),
            "messages at another offset than acknowledged",
        ),
        (
            "damaged",
            report.messages.damaged.to_string(),
            "batches or messages that were never sent in this form",
        ),
        (
            "read",
            mib(report.read_rss_bytes),
            "MiB of memory after the read",
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
    fn kafka_idle_report_shows_memory_cpu_and_first_fetch() {
        let report = IdleReport {
            idle_rss_bytes: 99 << 20,
            idle_seconds: 10.0,
            idle_cpu_ms: 25.0,
            first_fetch_ms: 812.25,
            ..IdleReport::default()
        };
        let text = text(&report);
        for line in [
            "idle                   99.0  MiB of memory",
            "CPU                     2.5  ms per second",
            "first fetch           812.2  ms until the first",
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

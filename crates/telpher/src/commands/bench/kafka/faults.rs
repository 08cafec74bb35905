//! `telpher bench kafka --cluster`: three nodes, and faults of them under load.

use bench_kafka::{self as kafka, Fault, FaultReport, FaultRun, Milliseconds};
use clap::ValueEnum;

use super::super::outcome::{Outcome, failure};
use super::Args;
use console::{Exit, Failure};

/// The arguments of a measurement of a cluster.
#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// Start a cluster of this number of nodes, and compare it with one node
    #[arg(long, value_name = "NODES", conflicts_with_all = ["bootstrap_servers", "durability", "idle"],
        value_parser = clap::value_parser!(u32).range(2..=9))]
    pub(super) cluster: Option<u32>,

    /// Faults to inject under load instead, --repeats times
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        requires = "cluster"
    )]
    fault: Vec<FaultArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FaultArg {
    /// No fault
    None,
    /// kill -9 of the node that leads
    KillLeader,
    /// kill -9 of another node
    KillFollower,
    /// kill -9 of all nodes
    KillAll,
    /// SIGSTOP of the node that leads, for 2 s
    Pause,
    /// SIGSTOP of all nodes at the same time, for 2 s
    PauseAll,
}

impl From<FaultArg> for Fault {
    fn from(fault: FaultArg) -> Self {
        match fault {
            FaultArg::None => Self::None,
            FaultArg::KillLeader => Self::KillLeader,
            FaultArg::KillFollower => Self::KillFollower,
            FaultArg::KillAll => Self::KillAll,
            FaultArg::Pause => Self::Pause,
            FaultArg::PauseAll => Self::PauseAll,
        }
    }
}

impl ClusterArgs {
    /// Returns the run with faults, if one is requested.
    pub(super) fn faults(&self, args: &Args) -> Option<FaultRun> {
        let nodes = self.cluster.filter(|_| !self.fault.is_empty())?;
        Some(FaultRun {
            nodes,
            faults: self.fault.iter().map(|one| (*one).into()).collect(),
            repeats: args.runs.repeats,
            producers: args.concurrency.iter().copied().max().unwrap_or(1),
            partitions: args.partitions,
            size: args.message_size as usize,
            directory: args.runs.dir.clone(),
        })
    }
}

/// Injects faults and prints their times.
pub(super) fn run(outcome: &Outcome, run: &FaultRun) -> Result<(), Failure> {
    let surroundings = outcome.surroundings()?;
    let report = kafka::run_faults(&surroundings, run, outcome.steps()).map_err(failure)?;
    outcome.print(&report, &text(&report))?;
    match report.is_clean() {
        true => Ok(()),
        false => {
            let message = "the stored messages differ from the acknowledged ones";
            Err(Failure::new(Exit::Failed, message)
                .hint("the table shows how many, and the reasons"))
        }
    }
}

fn text(report: &FaultReport) -> String {
    let mut text = format!(
        "{} nodes, {} producers with one message of {} B in flight, {} partitions, acks=all\n\n",
        report.nodes, report.producers, report.size, report.partitions,
    );
    for node in &report.idle {
        let memory = node.rss_bytes as f64 / f64::from(1 << 20);
        text.push_str(&format!(
            "{:<14} {:>5.1}%  of a core, {memory:.0} MiB, before the load\n",
            "idle node", node.cpu_percent
        ));
    }
    text.push_str(&format!(
        "\n{:<14} {:>6}   {:<34}   {}\n",
        "fault", "times", "ms until the first ack, p50/p99/max", "longest ms without an ack"
    ));
    let times = |it: Milliseconds| format!("{:.0} / {:.0} / {:.0}", it.p50, it.p99, it.max);
    for one in &report.faults {
        text.push_str(&format!(
            "{:<14} {:>6}   {:<36}   {:<28}   {}\n",
            one.fault,
            one.count,
            times(one.first_ack_ms),
            times(one.longest_gap_ms),
            one.epochs_max
        ));
    }
    text.push('\n');
    let messages = &report.messages;
    let counts = [
        ("acked", messages.acked, "messages"),
        (
            "lost",
            messages.lost,
            "acknowledged messages that are not stored",
        ),
        (
            "duplicated",
            messages.duplicated,
            "messages that are stored more than once",
        ),
        (
            "moved",
            messages.moved,
            "messages at another offset than acknowledged",
        ),
        (
            "damaged",
            messages.damaged,
            "batches or messages that were never sent in this form",
        ),
    ];
    for (name, count, words) in counts {
        text.push_str(&format!("{name:<14} {count:>12}  {words}\n"));
    }
    for (reason, count) in &report.retries {
        text.push_str(&format!("{:<14} {count:>12}  {reason}\n", "repeated"));
    }
    for (reason, count) in &report.failures {
        text.push_str(&format!("{:<14} {count:>12}  {reason}\n", "given up"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_kafka::{FaultTimes, IdleNode};

    #[test]
    fn report_of_faults_shows_times_losses_and_reasons() {
        let times = Milliseconds {
            min: 900.0,
            p50: 1_000.4,
            p99: 1_900.0,
            max: 2_000.0,
        };
        let mut report = FaultReport {
            nodes: 3,
            idle: vec![IdleNode {
                cpu_percent: 1.25,
                rss_bytes: 30 << 20,
            }],
            faults: vec![FaultTimes {
                fault: "kill-leader",
                count: 50,
                first_ack_ms: times,
                longest_gap_ms: times,
                epochs_max: 1,
            }],
            retries: [("connection-lost".to_owned(), 7)].into(),
            ..FaultReport::default()
        };
        report.messages.lost = 2;
        let text = text(&report);
        for line in [
            "idle node        1.2%  of a core, 30 MiB, before the load",
            "kill-leader        50   1000 / 1900 / 2000",
            "lost                      2  acknowledged",
            "repeated                  7  connection-lost",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!report.is_clean());
    }
}

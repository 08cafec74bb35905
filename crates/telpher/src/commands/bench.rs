//! `telpher bench`: how fast, with how much work, and how sure.
//!
//! Turns flags into what the workloads run, and results into files and words. It measures nothing.

mod agent;
mod compare;
mod journal;
mod kafka;
mod outcome;
mod quota;
mod report;
mod rpc;
mod store;

use crate::failure::Failure;

const ABOUT: &str = "\
Measure on this machine: messages between agents, calls, and the same work done by others.

Every figure is a mean over several runs with its 95 % interval. Runs of different cases take turns; \
node, senders and receivers are processes of their own. Beside a figure that does not mean what it \
seems stands a flag: too-short, pacing-limited, generator-limited, unstable, noisy-host.";

const EXAMPLES: &str = "\
Start here:
  telpher bench rpc                                   calls in three modes, a minute
  telpher bench agent                                 messages through a node, at a rate
  telpher bench agent --rate 0 --mode request-reply   how many requests at most
  telpher bench journal                               appends that are on disk when they are acknowledged
  telpher bench store                                 messages in conversations, over every door
  telpher bench kafka                                 messages to topics, over the Kafka protocol
  telpher bench quota                                 takes from agents' quotas

Beside others, after `cargo xtask peers`:
  telpher bench rpc --peers bench/peers/bin           the floor, ZeroMQ, tarpc, tonic
  telpher bench agent --peers bench/peers/bin --mode request-reply,publish --rate 0
                                                      NATS

Then:
  telpher bench report bench-out/*/results.json       the tables again, or in another style
  telpher bench compare old.json new.json --fail-if 'p99 > +10%'

Live lines go to the standard error, tables to the standard output, everything to --out:
results.json, Markdown, TSV, HTML with plots, and the latency histograms.";

/// Measure throughput, latency and the work it takes
#[derive(Debug, clap::Subcommand)]
#[command(long_about = ABOUT, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) enum Command {
    Agent(agent::Args),
    Rpc(rpc::Args),
    Journal(journal::Args),
    Kafka(kafka::Args),
    Store(store::Args),
    Quota(quota::Args),
    Compare(compare::Args),
    Report(report::Args),
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Agent(args) => agent::run(&args),
        Command::Rpc(args) => rpc::run(&args),
        Command::Journal(args) => journal::run(&args),
        Command::Kafka(args) => kafka::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Quota(args) => quota::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
    }
}

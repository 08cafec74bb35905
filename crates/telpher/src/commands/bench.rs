//! `telpher bench`: benchmarks of throughput, latency and resource use.
//!
//! Converts flags to workloads and prints results. The measurements are in the `bench` crate.

mod agent;
mod compare;
mod growth;
mod journal;
mod kafka;
mod kill;
mod outcome;
mod quota;
mod report;
mod rpc;
mod runs;
mod store;

use console::{Failure, output};

use crate::commands::version::IS_OPTIMIZED;

const ABOUT: &str = "\
Measure messages, calls, durable appends, conversations, topics and quotas on this machine, and the \
same work done by other systems.

Every figure is a mean over several runs with its 95 % interval. Runs of different cases are \
interleaved; node, senders and receivers are separate processes. Unreliable figures are flagged: \
too-short, pacing-limited, generator-limited, unstable, noisy-host.";

const EXAMPLES: &str = "\
Start here:
  telpher bench rpc                                   calls in three modes, about a minute
  telpher bench agent                                 messages through a node at a fixed rate
  telpher bench agent --rate 0 --mode request-reply   maximum rate of requests
  telpher bench journal                               durable appends
  telpher bench store                                 messages in conversations, over every protocol
  telpher bench kafka                                 messages to topics over the Kafka protocol
  telpher bench quota                                 takes from quotas
  telpher bench growth                                cost of a node by what it holds, 15 minutes

Compare with other systems, after `cargo xtask peers`:
  telpher bench rpc --peers bench/peers/bin           with the floor, ZeroMQ, tarpc and tonic
  telpher bench agent --peers bench/peers/bin --mode request-reply,publish --rate 0
                                                      with NATS

Use results:
  telpher bench report bench-out/*/results.json       print the tables again, or in another style
  telpher bench compare old.json new.json --fail-if 'p99 > +10%'

Progress is printed to the standard error and tables to the standard output. The directory --out gets
results.json, Markdown, TSV, HTML with plots, and latency histograms.

A floor is a minimal program that does only the unavoidable work of a case.";

/// Measure throughput, latency, CPU time and memory
#[derive(Debug, clap::Subcommand)]
#[command(long_about = ABOUT, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) enum Command {
    Agent(agent::Args),
    Rpc(rpc::Args),
    Journal(journal::Args),
    Kafka(kafka::Args),
    Store(store::Args),
    Quota(quota::Args),
    Growth(growth::Args),
    Compare(compare::Args),
    Report(report::Args),
}

pub(crate) fn run(command: Command) -> Result<(), Failure> {
    let measures = !matches!(command, Command::Compare(_) | Command::Report(_));
    if measures && !IS_OPTIMIZED {
        output::note(
            "warning: this program was built without optimization: its times are not Telpher's\n\
             hint: measure with `cargo build --release`",
        );
    }
    match command {
        Command::Agent(args) => agent::run(&args),
        Command::Rpc(args) => rpc::run(&args),
        Command::Journal(args) => journal::run(&args),
        Command::Kafka(args) => kafka::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Quota(args) => quota::run(&args),
        Command::Growth(args) => growth::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
    }
}

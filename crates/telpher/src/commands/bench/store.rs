//! `telpher bench store`.

mod idle;
mod kill;
mod soak;

use std::path::PathBuf;
use std::time::Duration;

use bench::workload::store::{self, Door, Matrix};
use clap::ValueEnum;

use super::outcome::{Outcome, Style};
use crate::failure::Failure;
use crate::settings::parse_duration;

const ABOUT: &str = "\
Messages appended to conversations, each acknowledged when it is on disk.

Virtual users join one after the other over the ramp; each keeps messages in flight on a conversation of its \
own. Counted is what is begun and acknowledged in the steady window after that. With --peers the floors do the \
least of the same in the same run (a raw sync, group commit within one process, an echo that syncs before it \
answers), and so do those of PostgreSQL, Redis and durable-streams that are in that directory; the runs take \
turns, and every run has a server and a directory of its own.

With --kill-9-check nothing is measured: a node is killed over and over while messages are appended, and \
everything it acknowledged is read back. With --idle many conversations are made and left alone: what each \
costs in memory, and how long a node that holds them takes to start. With --soak the load is kept up, on one conversation \
after the other, and memory must stay where it is. Both look for room on the disk first.";

const EXAMPLES: &str = "\
Examples:
  telpher bench store
      30 users with 5 messages in flight each, over every door: the load of FleetLM's report
  telpher bench store --ramp 1s --duration 5s --repeats 5 --peers bench/peers/bin
      short runs beside floors and peers, with intervals
  telpher bench store --vus 1 --pipeline 1 --door native --ramp 0s --duration 5s --repeats 5 --peers bench/peers/bin
      one message at a time, beside a raw sync and a raw round trip
  telpher bench store --with-agent --door http
      beside an agent that answers, as in that report's set-up
  telpher bench store --kill-9-check 20
      twenty kills; fails if anything that was acknowledged is lost, doubled, moved or answered otherwise
  telpher bench store --idle 1000000 --size 64
      a million conversations of 10 messages
  telpher bench store --soak 5m --door native
      five minutes";

/// Measure conversations: durable messages over every door
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Virtual users, each with a conversation of its own
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    vus: u32,

    /// Messages that each has in flight
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pipeline: u32,

    /// Time over which the users join
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    ramp: Duration,

    /// Length of the steady window behind it
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    duration: Duration,

    /// Doors that the users come through
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "native,ws,http"
    )]
    door: Vec<Through>,

    /// Bytes of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=64 << 10))]
    size: u64,

    /// Runs of each case; an interval needs at least two
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,

    /// Have a mock webhook agent called for every conversation; it answers at once
    #[arg(long, conflicts_with_all = ["kill_9_check", "idle", "soak"])]
    with_agent: bool,

    /// Directory on the disk to measure; what is written in it is removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Kill a node so often under load, and read back everything that it acknowledged
    #[arg(long = "kill-9-check", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    kill_9_check: Option<u32>,

    /// Make so many conversations, leave them alone, and start the node again
    #[arg(long, value_name = "N", conflicts_with = "kill_9_check",
        value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    idle: Option<u64>,

    /// Messages in each of those
    #[arg(long, value_name = "N", default_value_t = 10, requires = "idle",
        value_parser = clap::value_parser!(u64).range(1..=256))]
    idle_messages: u64,

    /// How long those are left alone before their memory is read
    #[arg(long, value_name = "DURATION", default_value = "30s", requires = "idle", value_parser = parse_duration)]
    idle_rest: Duration,

    /// Keep up the load so long, and fail unless memory stays where it is
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["kill_9_check", "idle"], value_parser = parse_duration)]
    soak: Option<Duration>,

    /// Messages after which a user goes on with another conversation then
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "soak",
        value_parser = clap::value_parser!(u64).range(1..))]
    soak_messages: u64,

    /// What the moments of the kills follow from [default: another each time]
    #[arg(long, value_name = "N", requires = "kill_9_check")]
    seed: Option<u64>,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Through {
    /// The native protocol
    Native,
    /// HTTP/1.1, a request for each message
    Http,
    /// A WebSocket for each user
    Ws,
}

impl From<Through> for Door {
    fn from(through: Through) -> Self {
        match through {
            Through::Native => Self::Native,
            Through::Http => Self::Http,
            Through::Ws => Self::Ws,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(kills) = args.kill_9_check {
        return kill::run(args, kills);
    }
    if let Some(conversations) = args.idle {
        return idle::run(args, conversations);
    }
    if let Some(length) = args.soak {
        return soak::run(args, length);
    }
    let matrix = args.matrix();
    let styles = [Style::Fleetlm, Style::Table];
    args.outcome
        .of("store", &styles, |surroundings, environment, show| {
            store::run(surroundings, &matrix, environment, show)
        })
}

impl Args {
    fn matrix(&self) -> Matrix {
        Matrix {
            vus: self.vus,
            pipeline: self.pipeline,
            messages: self.soak.map(|_| self.soak_messages),
            size: self.size,
            doors: self.door.iter().map(|door| (*door).into()).collect(),
            ramp: self.ramp,
            window: self.duration,
            repeats: self.repeats,
            with_agent: self.with_agent,
            directory: self.dir.clone(),
        }
    }
}

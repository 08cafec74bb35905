//! Arguments of `telpher bench store`.

use std::time::Duration;

use bench_storage::store::{Door, Matrix};
use clap::ValueEnum;

use super::super::kill::KillArgs;
use super::super::outcome::Outcome;
use super::super::runs::DiskRuns;
use crate::settings::parse_duration;

const ABOUT: &str = "\
Messages appended to conversations, each acknowledged when it is on disk.

Virtual users start one after the other during the ramp; each keeps messages in flight on its own \
conversation. Messages that are sent and acknowledged in the following steady window are counted. With \
--peers the floors (a raw sync, group commit within one process, an echo that syncs before it answers) \
do the same in the same run, and so do PostgreSQL, Redis and durable-streams, if they are in that \
directory; the runs are interleaved, and every run has its own server and directory.

--kill-9-check does not measure: it kills a node repeatedly while messages are appended, and reads \
everything that was acknowledged back. --idle creates many conversations and measures their memory and \
the duration of a start. --soak runs the load for a long time, on one conversation after the other, and \
fails if memory grows. --idle and --soak check the free disk space first.";

const EXAMPLES: &str = "\
Examples:
  telpher bench store
      30 users with 5 messages in flight each, over every protocol: the load of FleetLM's report
  telpher bench store --ramp 1s --duration 5s --repeats 5 --peers bench/peers/bin
      short runs compared with floors and other systems, with intervals
  telpher bench store --vus 1 --pipeline 1 --door native --ramp 0s --duration 5s --repeats 5 --peers bench/peers/bin
      one message at a time, compared with a raw sync and a raw round trip
  telpher bench store --with-agent --door http
      with an agent that answers, as in FleetLM's set-up
  telpher bench store --kill-9-check 20
      20 kills; fails if an acknowledged message is lost, duplicated, moved or answered differently
  telpher bench store --idle 1000000 --size 64
      memory of a million conversations of 10 messages
  telpher bench store --soak 5m --door native
      constant load for five minutes";

/// Measure conversations: durable messages over every protocol
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Number of virtual users, each with its own conversation
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) vus: u32,

    /// Messages in flight per user
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) pipeline: u32,

    /// Time over which the users start
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(super) ramp: Duration,

    /// Length of the steady window after the ramp
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub(super) duration: Duration,

    /// Protocols of the users; each is a case
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "native,ws,http"
    )]
    door: Vec<Protocol>,

    /// Bytes of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=64 << 10))]
    pub(super) size: u64,

    /// Call a mock webhook agent for every conversation; it answers at once
    #[arg(long, conflicts_with_all = ["kill_9_check", "idle", "soak"])]
    pub(super) with_agent: bool,

    #[command(flatten)]
    pub(super) runs: DiskRuns,

    #[command(flatten)]
    pub(super) kill: KillArgs,

    /// Create this number of conversations, leave them idle, and restart the node
    #[arg(long, value_name = "N", conflicts_with = "kill_9_check",
        value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(super) idle: Option<u64>,

    /// Number of messages in each idle conversation
    #[arg(long, value_name = "N", default_value_t = 10, requires = "idle",
        value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(super) idle_messages: u64,

    /// Idle time before memory is measured
    #[arg(long, value_name = "DURATION", default_value = "30s", requires = "idle", value_parser = parse_duration)]
    pub(super) idle_rest: Duration,

    /// Run the load for this time, and fail if memory grows
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["kill_9_check", "idle"], value_parser = parse_duration)]
    pub(super) soak: Option<Duration>,

    /// Number of messages after which a user starts another conversation
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "soak",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) soak_messages: u64,

    #[command(flatten, next_help_heading = "Results")]
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// The native protocol
    Native,
    /// HTTP/1.1, a request for each message
    Http,
    /// A WebSocket for each user
    Ws,
}

impl From<Protocol> for Door {
    fn from(through: Protocol) -> Self {
        match through {
            Protocol::Native => Self::Native,
            Protocol::Http => Self::Http,
            Protocol::Ws => Self::Ws,
        }
    }
}

impl Args {
    /// Returns the cases of the benchmark.
    pub(super) fn matrix(&self) -> Matrix {
        Matrix {
            vus: self.vus,
            pipeline: self.pipeline,
            messages: self.soak.map(|_| self.soak_messages),
            size: self.size,
            doors: self.door.iter().map(|door| (*door).into()).collect(),
            ramp: self.ramp,
            window: self.duration,
            repeats: self.runs.repeats,
            with_agent: self.with_agent,
            directory: self.runs.dir.clone(),
        }
    }
}

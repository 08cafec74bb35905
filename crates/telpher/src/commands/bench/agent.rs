//! `telpher bench agent`.

mod subscriptions;

use std::time::Duration;

use bench::sweep::SweepOptions;
use bench::workload::agent::{self, AgentMode, Applications, Matrix};
use clap::ValueEnum;

use super::outcome::{Outcome, Place, Style};
use crate::failure::{Exit, Failure};
use crate::settings::parse_duration;

const ABOUT: &str = "\
Messages between agents through a node of its own, as the SLIM suite measures them.

Lists, separated by commas, make a matrix. Each client has a connection and a destination of its own \
and its share of the rate. At a rate, latency counts from when a message left (service) and from when \
it was meant to leave (response); the throughput is then the schedule's. At rate 0 messages are sent as \
fast as the node takes them; what a full subscriber then does not take is counted as lost.

With --protocol slim SLIM's own applications send and receive, through this node and through SLIM's in turns, one \
message at a time; our own do the same over the native protocol beside them. slimctl sends as fast as it can and \
is left out where there is a rate.";

const EXAMPLES: &str = "\
Examples:
  telpher bench agent --repeats 25
      the smoke run of the SLIM suite: 100 requests, 1000 messages, 1000 writes per second
  telpher bench agent --clients 1,10,50 --size 16,128,1024,10240 --mode fire-and-forget
      its matrix
  telpher bench agent --mode request-reply --rate 0 --in-flight 1,10,64
      as many requests as can be
  telpher bench agent --mode publish --subscribers 1,10
      one to many; counted is what the subscribers receive together
  telpher bench agent --sweep --mode fire-and-forget --size 16384
      the capacity: the rate grows until the throughput does not
  telpher bench agent --protocol slim --peers bench/peers/bin --size 16,1024,16384 --rate 0,100
      SLIM's applications through this node and through SLIM's own, in turns
  telpher bench agent --protocol slim --peers bench/peers/bin --subscriptions 10000
      what a subscription takes of a node's memory, here and there";

/// Measure messages between agents
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What the agents speak; `slim` is SLIM's own applications, through this node and SLIM's
    #[arg(long, value_enum, value_name = "PROTOCOL", default_value = "native")]
    protocol: Protocol,

    /// Whose applications send and receive with --protocol slim; unless given, all that are there
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    slim_clients: Vec<SlimClients>,

    /// With --protocol slim: subscribe to so many names, and tell what one takes of memory
    #[arg(long, value_name = "N", conflicts_with_all = ["slim_clients", "mode", "clients", "sweep"],
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    subscriptions: Option<u32>,

    /// Over how many connections; a node for each number
    #[arg(long, value_delimiter = ',', value_name = "LIST", requires = "subscriptions",
        default_value = "100,1000", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    connections: Vec<u32>,

    /// Ways of exchanging messages
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "MODES",
        default_value = "request-reply,fire-and-forget,write"
    )]
    mode: Vec<Mode>,

    /// Clients that send at once
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: Vec<u32>,

    /// Bytes of a message
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "16")]
    size: Vec<u64>,

    /// Requests per second of all clients together; 0: as fast as possible
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "100"
    )]
    rate: Vec<u64>,

    /// One-way messages per second; unless given, 1000, or 0 with --rate 0
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    oneway_rate: Vec<u64>,

    /// Writes per second; unless given, 1000, or 0 with --rate 0
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    write_rate: Vec<u64>,

    /// Requests or writes each client keeps in flight at rate 0
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=16_000))]
    in_flight: Vec<u32>,

    /// Subscribers of what is published
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    subscribers: Vec<u32>,

    /// Length of a run
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    duration: Duration,

    /// Runs of each case
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,

    /// On which CPUs the processes run
    #[arg(long, value_enum, default_value = "unpinned")]
    placement: Place,

    #[command(flatten)]
    sweep: Sweep,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

/// How a capacity is looked for: the rate grows until the throughput stops improving, then the gap
/// between the last rate that helped and the first that did not is halved.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Capacity")]
struct Sweep {
    /// Look for the capacity of each case; its rates are then the sweep's
    #[arg(long)]
    sweep: bool,

    /// First rate
    #[arg(long, value_name = "RATE", default_value_t = 1000, requires = "sweep")]
    sweep_start_rate: u64,

    /// Highest rate
    #[arg(long, value_name = "RATE", requires = "sweep")]
    sweep_max_rate: Option<u64>,

    /// By how much the rate grows
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0, requires = "sweep")]
    sweep_growth: f64,

    /// Gain, in percent, below which a step has not improved
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 5.0,
        requires = "sweep"
    )]
    sweep_plateau: f64,

    /// Steps without improvement that end the growth
    #[arg(long, value_name = "N", default_value_t = 2, requires = "sweep")]
    sweep_plateau_steps: u32,

    /// Steps of growth at most
    #[arg(long, value_name = "N", default_value_t = 8, requires = "sweep")]
    sweep_steps: u32,

    /// Halvings at most
    #[arg(long, value_name = "N", default_value_t = 4, requires = "sweep")]
    sweep_refine: u32,

    /// Gap below which halving ends
    #[arg(long, value_name = "RATE", default_value_t = 250, requires = "sweep")]
    sweep_min_delta: u64,

    /// Runs of each step
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sweep")]
    sweep_repeats: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// This node's own
    Native,
    /// SLIM's data plane; a write is what a receiving session acknowledges
    Slim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SlimClients {
    /// SLIM's bindings for Python
    Python,
    /// SLIM's bindings for Python, requests in reliable sessions; taken only if they are named
    PythonReliable,
    /// `slimctl bench`, in Rust; never on a schedule
    Slimctl,
    /// Our own, over SLIM's data plane without its sessions; no write mode
    Raw,
    /// Our own, over the native protocol, through this node only
    Native,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Each message is answered
    RequestReply,
    /// One way, to receivers that count
    FireAndForget,
    /// Into the node, which acknowledges it; nobody receives
    Write,
    /// One way to several subscribers, never paced
    Publish,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    args.check()?;
    if let Some(count) = args.subscriptions {
        return subscriptions::run(args, count);
    }
    let matrix = args.matrix();
    let chosen: Vec<_> = args.slim_clients.iter().map(|one| (*one).into()).collect();
    args.outcome.of(
        "agent",
        &[Style::Table],
        |surroundings, environment, show| match args.protocol {
            Protocol::Native => agent::run(surroundings, &matrix, environment, show),
            Protocol::Slim => agent::run_slim(surroundings, &matrix, &chosen, environment, show),
        },
    )
}

impl Args {
    /// What only SLIM's applications have is no question for ours.
    fn check(&self) -> Result<(), Failure> {
        let flag = match (self.subscriptions.is_some(), self.slim_clients.is_empty()) {
            (true, _) => "--subscriptions",
            (false, false) => "--slim-clients",
            (false, true) => return Ok(()),
        };
        match self.protocol {
            Protocol::Slim => Ok(()),
            Protocol::Native => {
                let message = format!("{flag} is about SLIM's applications");
                Err(Failure::new(Exit::Usage, message).hint("add --protocol slim"))
            }
        }
    }

    fn matrix(&self) -> Matrix {
        let mode = |mode: &Mode| match mode {
            Mode::RequestReply => AgentMode::RequestReply,
            Mode::FireAndForget => AgentMode::FireAndForget,
            Mode::Write => AgentMode::Write,
            Mode::Publish => AgentMode::Publish,
        };
        let usual = match self.rate[..] == [0] {
            true => 0,
            false => 1000,
        };
        let given = |rates: &[u64]| match rates.is_empty() {
            true => vec![usual],
            false => rates.to_vec(),
        };
        Matrix {
            modes: self.mode.iter().map(mode).collect(),
            clients: self.clients.clone(),
            sizes: self.size.clone(),
            rates: self.rate.clone(),
            oneway_rates: given(&self.oneway_rate),
            write_rates: given(&self.write_rate),
            in_flight: self.in_flight.clone(),
            subscribers: self.subscribers.clone(),
            window: self.duration,
            repeats: self.repeats,
            sweep: self.sweep.sweep.then(|| self.sweep.options()),
            placement: self.placement.into(),
        }
    }
}

impl Sweep {
    fn options(&self) -> SweepOptions {
        SweepOptions {
            start_rate: self.sweep_start_rate,
            rate_max: self.sweep_max_rate,
            growth: self.sweep_growth,
            plateau_threshold: self.sweep_plateau / 100.0,
            plateau_steps: self.sweep_plateau_steps,
            steps_max: self.sweep_steps,
            refinement_steps: self.sweep_refine,
            rate_delta_min: self.sweep_min_delta,
            repeats: self.sweep_repeats,
        }
    }
}

impl From<SlimClients> for Applications {
    fn from(clients: SlimClients) -> Self {
        match clients {
            SlimClients::Python => Self::Python,
            SlimClients::PythonReliable => Self::PythonReliable,
            SlimClients::Slimctl => Self::Slimctl,
            SlimClients::Raw => Self::Raw,
            SlimClients::Native => Self::Native,
        }
    }
}

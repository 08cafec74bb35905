//! `telpher bench agent`: messages between agents.

mod subscriptions;

use bench::sweep::SweepOptions;
use bench_messaging::agent::slim::{self, Applications};
use bench_messaging::agent::{self, AgentMode, Matrix};
use clap::ValueEnum;

use super::outcome::{Outcome, PlacementArg, Style};
use super::runs::ShortRuns;
use console::{Exit, Failure};

const ABOUT: &str = "\
Messages between agents through a node that the benchmark starts, measured like the SLIM suite.

Comma-separated lists make a matrix of cases. Each client has its own connection and destination and \
its share of the rate. At a fixed rate, latency is measured from the time when a message was sent \
(service) and from its scheduled time (response); the throughput is that of the schedule. At rate 0 \
messages are sent as fast as the node accepts them; messages that a full subscriber drops count as lost.

With --protocol slim, SLIM's own applications send and receive one message at a time, through this node \
and through SLIM's node in turn; native clients do the same for comparison. slimctl has no rate limit \
and is omitted from cases with a rate.";

const EXAMPLES: &str = "\
Examples:
  telpher bench agent --repeats 25
      smoke run of the SLIM suite: 100 requests, 1000 messages, 1000 writes per second
  telpher bench agent --clients 1,10,50 --size 16,128,1024,10240 --mode fire-and-forget
      matrix of the SLIM suite
  telpher bench agent --mode request-reply --rate 0 --in-flight 1,10,64
      maximum rate of requests
  telpher bench agent --mode publish --subscribers 1,10
      one sender, many subscribers; counts the messages that all subscribers receive
  telpher bench agent --sweep --mode fire-and-forget --size 16384
      capacity: increases the rate until the throughput stops growing
  telpher bench agent --protocol slim --peers bench/peers/bin --size 16,1024,16384 --rate 0,100
      SLIM applications through this node and through SLIM's node
  telpher bench agent --protocol slim --peers bench/peers/bin --subscriptions 10000
      memory per subscription, in this node and in SLIM's node";

/// Measure messages between agents
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Protocol of the agents; `slim` uses SLIM's own applications
    #[arg(long, value_enum, value_name = "PROTOCOL", default_value = "native")]
    protocol: Protocol,

    /// Applications that send and receive with --protocol slim [default: all that are available]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    slim_clients: Vec<SlimClients>,

    /// With --protocol slim: subscribe to this number of names, and measure memory per subscription
    #[arg(long, value_name = "N", conflicts_with_all = ["slim_clients", "mode", "clients", "sweep"],
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    subscriptions: Option<u32>,

    /// Connections for --subscriptions; each number is measured with a new node
    #[arg(long, value_delimiter = ',', value_name = "LIST", requires = "subscriptions",
        default_value = "100,1000", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    connections: Vec<u32>,

    /// Modes of messaging
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "MODES",
        default_value = "request-reply,fire-and-forget,write"
    )]
    mode: Vec<Mode>,

    /// Number of concurrent clients
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: Vec<u32>,

    /// Bytes of a message
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "16")]
    size: Vec<u64>,

    /// Requests per second of all clients together; 0 is as fast as possible
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "100"
    )]
    rate: Vec<u64>,

    /// One-way messages per second [default: 1000, or 0 with --rate 0]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    oneway_rate: Vec<u64>,

    /// Writes per second [default: 1000, or 0 with --rate 0]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    write_rate: Vec<u64>,

    /// Requests or writes that each client keeps in flight at rate 0
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=16_000))]
    in_flight: Vec<u32>,

    /// Number of subscribers in publish mode
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    subscribers: Vec<u32>,

    #[command(flatten)]
    runs: ShortRuns,

    /// CPUs of the processes
    #[arg(long, value_enum, default_value = "unpinned")]
    placement: PlacementArg,

    #[command(flatten)]
    sweep: Sweep,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

/// The search for the capacity: the rate grows until the throughput stops improving; then the gap
/// between the last rate that improved it and the first that did not is halved.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Capacity")]
struct Sweep {
    /// Search for the capacity of each case, in place of --rate
    #[arg(long)]
    sweep: bool,

    /// First rate
    #[arg(long, value_name = "RATE", default_value_t = 1000, requires = "sweep")]
    sweep_start_rate: u64,

    /// Highest rate
    #[arg(long, value_name = "RATE", requires = "sweep")]
    sweep_max_rate: Option<u64>,

    /// Factor of the rate from step to step
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0, requires = "sweep")]
    sweep_growth: f64,

    /// Gain in percent below which a step counts as no improvement
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 5.0,
        requires = "sweep"
    )]
    sweep_plateau: f64,

    /// Number of steps without improvement that end the growth
    #[arg(long, value_name = "N", default_value_t = 2, requires = "sweep")]
    sweep_plateau_steps: u32,

    /// Maximum number of growth steps
    #[arg(long, value_name = "N", default_value_t = 8, requires = "sweep")]
    sweep_steps: u32,

    /// Maximum number of halvings
    #[arg(long, value_name = "N", default_value_t = 4, requires = "sweep")]
    sweep_refine: u32,

    /// Gap between rates below which halving ends
    #[arg(long, value_name = "RATE", default_value_t = 250, requires = "sweep")]
    sweep_min_delta: u64,

    /// Number of runs of each step
    #[arg(long, value_name = "N", default_value_t = 1, requires = "sweep")]
    sweep_repeats: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// The native protocol
    Native,
    /// SLIM's data plane; a write is a message that the receiving session acknowledges
    Slim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SlimClients {
    /// SLIM's bindings for Python
    Python,
    /// SLIM's bindings for Python, requests in reliable sessions; only if named
    PythonReliable,
    /// `slimctl bench`, in Rust; only without a rate
    Slimctl,
    /// Telpher's client on SLIM's data plane; no sessions, no write mode
    Raw,
    /// Telpher's client on the native protocol, only through this node
    Native,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Each message is answered
    RequestReply,
    /// One-way messages to receivers that count them
    FireAndForget,
    /// Writes that the node acknowledges, without a receiver
    Write,
    /// One-way messages to several subscribers, without a rate
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
        |surroundings, runner| match args.protocol {
            Protocol::Native => agent::run(surroundings, &matrix, runner),
            Protocol::Slim => slim::run_slim(surroundings, &matrix, &chosen, runner),
        },
    )
}

impl Args {
    /// Refuses flags of SLIM applications with the native protocol.
    fn check(&self) -> Result<(), Failure> {
        let flag = match (self.subscriptions.is_some(), self.slim_clients.is_empty()) {
            (true, _) => "--subscriptions",
            (false, false) => "--slim-clients",
            (false, true) => return Ok(()),
        };
        match self.protocol {
            Protocol::Slim => Ok(()),
            Protocol::Native => {
                let message = format!("{flag} needs --protocol slim");
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
            window: self.runs.duration,
            repeats: self.runs.repeats,
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

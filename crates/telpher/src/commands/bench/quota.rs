//! `telpher bench quota`: takes from quotas.

mod memory;

use std::time::Duration;

use bench_quota::{self as quota, Busy, Door, Limits, Matrix, Reuse, Step, Subject, Work};
use clap::ValueEnum;

use super::outcome::{Outcome, Style, check};
use super::runs::DiskRuns;
use crate::settings::parse_duration;
use console::Failure;

const ABOUT: &str = "\
Takes from agents' quotas over HTTP or the native protocol.

Without --vus, -n or --rate every connection sends a take as soon as the last one was answered. With \
--vus virtual users send several kinds of requests in turn, with pauses. -n sends a number of takes, as \
Apache Bench does. --rate sends on a schedule, regardless of the answers. A denied take is not an error. \
With one agent and -n the number of allowed takes must be 100 plus 10 per second; a run that allows more \
or fewer fails.

With --peers an HTTP server without limits, a rate limiter on Express and Redis, and throttlecrab do the \
same work in the same run, if they are in that directory; the runs are interleaved, and every run starts \
its own server. With --store redis several nodes share a redis-server; takes from leases are compared \
with one Redis call per take, with and without a node, and a run that admits more than the shared limit \
fails. --url measures a running server in place of the node; its CPU time is unknown then.";

const EXAMPLES: &str = "\
Examples:
  telpher bench quota --vus 50 --agents 10000 --duration 30s --mix health,request,quota,test --think 500ms
      the k6 test of the rate limiter's report
  telpher bench quota --agents 1 -n 1000 -c 50
      its Apache Bench test, with and without keep-alive
  telpher bench quota --peers bench/peers/bin --repeats 5 --duration 5s
      closed loop, 10,000 agents, compared with other systems
  telpher bench quota --agents 10000,1 --batch 100 --pipeline 1,16
      one agent and many, batches of takes, many requests in flight
  telpher bench quota --door http,native --pipeline 1,16 --batch 100
      the native protocol compared with HTTP
  telpher bench quota --store redis --nodes 1,3 --agents 1,1000000 --door http,native --pipeline 16
      nodes that share a Redis: one agent (leases), and so many that each take is a Redis call
  telpher bench quota --rate 5000,20000
      at fixed rates
  telpher bench quota --url http://127.0.0.1:3000 --vus 50
      another server with the same API
  telpher bench quota --memory 1000000
      memory per bucket";

/// Measure quotas: takes over HTTP and the native protocol
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
#[command(mut_arg("dir", |dir| dir.help("Directory for the data of servers; it is removed at the end")))]
pub(crate) struct Args {
    /// Number of agents; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "10000",
        value_parser = clap::value_parser!(u32).range(1..=99_999_999))]
    agents: Vec<u32>,

    /// Number of connections
    #[arg(long, short, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,

    /// Length of a run, after its warm-up
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    duration: Duration,

    /// Warm-up before the run, which is not counted
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    warmup: Duration,

    /// Requests in flight per connection; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    pipeline: Vec<u32>,

    /// Takes per request, if the server supports batches; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST",
        value_parser = clap::value_parser!(u32).range(2..=1000))]
    batch: Vec<u32>,

    /// Limits that cover each take of a batch: 1, or 6 (three tiers, two units); each is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1", requires = "batch",
        value_parser = parse_limits)]
    limits: Vec<Limits>,

    /// Protocols of the takes; each is a case
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST", default_value = "http",
        conflicts_with_all = ["vus", "requests", "rate", "url", "memory"])]
    door: Vec<Protocol>,

    /// Store that the nodes share; needs `redis-server`
    #[arg(long, value_enum, conflicts_with_all = ["vus", "requests", "rate", "limits", "url", "memory"])]
    store: Option<Store>,

    /// Number of nodes that share the store; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", requires = "store", default_value = "1,3",
        value_parser = clap::value_parser!(u32).range(1..=16))]
    nodes: Vec<u32>,

    /// Number of virtual users
    #[arg(long, value_name = "N", conflicts_with_all = ["requests", "rate", "batch"],
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    vus: Option<u32>,

    /// Requests that each virtual user sends in turn
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        requires = "vus",
        default_value = "health,request,quota,test"
    )]
    mix: Vec<RequestKind>,

    /// Pause of a virtual user after each round
    #[arg(long, value_name = "DURATION", requires = "vus", default_value = "500ms", value_parser = parse_duration)]
    think: Duration,

    /// Number of takes to send
    #[arg(long, short = 'n', value_name = "N", conflicts_with_all = ["rate", "batch"],
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    requests: Option<u64>,

    /// Keep-alive of the connections for --requests
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        requires = "requests",
        default_value = "off,on"
    )]
    keep_alive: Vec<KeepAlive>,

    /// Takes per second on a schedule; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", conflicts_with = "batch",
        value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: Vec<u64>,

    /// Running server to measure
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    url: Option<String>,

    /// Send one take for each of this number of agents, and measure the memory per bucket
    #[arg(long, value_name = "N", conflicts_with_all = ["vus", "requests", "rate", "batch", "url"],
        value_parser = clap::value_parser!(u64).range(1..=99_999_999))]
    memory: Option<u64>,

    /// Idle time before the memory of a server is measured
    #[arg(long, value_name = "DURATION", default_value = "30s", requires = "memory", value_parser = parse_duration)]
    memory_rest: Duration,

    #[command(flatten)]
    runs: DiskRuns,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RequestKind {
    /// GET /health
    Health,
    /// POST /api/request
    Request,
    /// GET /api/quota/:agentId
    Quota,
    /// GET /api/test-rate-limit
    Test,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// HTTP/1.1
    Http,
    /// The native protocol
    Native,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Store {
    /// A redis-server, started for each run
    Redis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeepAlive {
    /// A new connection for each request
    Off,
    /// All requests of a client on one connection
    On,
}

fn parse_limits(text: &str) -> Result<Limits, String> {
    match text {
        "1" => Ok(Limits::One),
        "6" => Ok(Limits::Six),
        _ => Err("write 1 or 6".to_owned()),
    }
}

/// Parses `http://HOST:PORT`; the scheme and a trailing slash are optional.
fn parse_url(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("http://").unwrap_or(text);
    let address = address.strip_suffix('/').unwrap_or(address);
    let port = address
        .rsplit_once(':')
        .map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(address.to_owned()),
        _ => Err("write http://HOST:PORT".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let matrix = args.matrix();
    if let Some(agents) = args.memory {
        return memory::run(args, &matrix, agents, args.memory_rest);
    }
    let styles = [Style::Limiter, Style::Table];
    let mut misses = Vec::new();
    args.outcome.of("quota", &styles, |surroundings, runner| {
        let results = quota::run(surroundings, &matrix, runner)?;
        misses = quota::misses(&results);
        Ok(results)
    })?;
    let hint = "see the tables, and `telpher bench quota --help` for the checks";
    check(&misses, hint)
}

impl Args {
    fn matrix(&self) -> Matrix {
        Matrix {
            subject: match &self.url {
                Some(address) => Subject::Url(address.clone()),
                None => Subject::Node,
            },
            work: self.work(),
            agents: self.agents.clone(),
            warmup: self.warmup,
            repeats: self.runs.repeats,
            directory: self.runs.dir.clone(),
        }
    }

    fn work(&self) -> Work {
        let (connections, window) = (self.connections, self.duration);
        match (self.vus, self.requests, self.rate.is_empty()) {
            (Some(vus), _, _) => Work::Mix {
                vus,
                steps: self.mix.iter().map(|step| (*step).into()).collect(),
                think: self.think,
                window,
            },
            (None, Some(requests), _) => Work::Count {
                connections,
                requests,
                reuse: self.keep_alive.iter().map(|kept| (*kept).into()).collect(),
            },
            (None, None, false) => Work::Scheduled {
                connections,
                rates: self.rate.clone(),
                window,
            },
            (None, None, true) => match self.store {
                None => Work::Closed {
                    load: self.busy(),
                    limits: self.limits.clone(),
                },
                Some(Store::Redis) => Work::Shared {
                    load: self.busy(),
                    nodes: self.nodes.clone(),
                },
            },
        }
    }

    fn busy(&self) -> Busy {
        Busy {
            connections: self.connections,
            pipelines: self.pipeline.clone(),
            batches: self.batch.clone(),
            doors: self.door.iter().map(|door| (*door).into()).collect(),
            window: self.duration,
        }
    }
}

impl From<RequestKind> for Step {
    fn from(kind: RequestKind) -> Self {
        match kind {
            RequestKind::Health => Self::Health,
            RequestKind::Request => Self::Request,
            RequestKind::Quota => Self::Quota,
            RequestKind::Test => Self::Test,
        }
    }
}

impl From<Protocol> for Door {
    fn from(through: Protocol) -> Self {
        match through {
            Protocol::Http => Self::Http,
            Protocol::Native => Self::Native,
        }
    }
}

impl From<KeepAlive> for Reuse {
    fn from(kept: KeepAlive) -> Self {
        match kept {
            KeepAlive::Off => Self::Never,
            KeepAlive::On => Self::Asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_limits_flag_accepts_1_and_6_only() {
        assert_eq!(parse_limits("1"), Ok(Limits::One));
        assert_eq!(parse_limits("6"), Ok(Limits::Six));
        assert!(parse_limits("2").is_err());
    }

    #[test]
    fn bench_server_url_is_parsed_to_host_and_port() {
        for text in [
            "http://127.0.0.1:3000",
            "http://127.0.0.1:3000/",
            "127.0.0.1:3000",
        ] {
            assert_eq!(parse_url(text), Ok("127.0.0.1:3000".to_owned()));
        }
        for text in ["https://x", "http://localhost", "http://x:port", ""] {
            assert!(parse_url(text).is_err(), "{text}");
        }
    }
}

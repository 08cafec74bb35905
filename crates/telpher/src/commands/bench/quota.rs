//! `telpher bench quota`.

mod memory;

use std::path::PathBuf;
use std::time::Duration;

use bench::workload::quota::{self, Busy, Door, Limits, Matrix, Reuse, Step, Subject, Work};
use clap::ValueEnum;

use super::outcome::{Outcome, Style, check};
use crate::failure::Failure;
use crate::settings::parse_duration;

const ABOUT: &str = "\
Takes from agents' quotas, over HTTP or the native protocol, and what is answered.

Without --vus, -n or --rate every connection asks for a take as soon as the last was answered. --vus lets \
virtual users ask several things in turn and think, -n asks for a number of takes as Apache Bench does, --rate \
asks on a schedule whatever the server does. A refused take is an answer and no error. With one agent and -n \
the number that must be allowed follows from the clock, 100 + 10 for each second, and a run that allows more \
or fewer fails.

With --peers an HTTP server that decides nothing, a limiter on Express and Redis, and throttlecrab do the same in \
the same run, as far as they are in that directory; the runs take turns, and every run has a server of its \
own. With --store redis nodes share a redis-server: the rate of takes from what they lease stands beside that of \
a call for each take, by a node and without one, and a run in which they admit more than they share fails. With --url a server that runs already takes the place of the node: its CPU time is not known then.";

const EXAMPLES: &str = "\
Examples:
  telpher bench quota --vus 50 --agents 10000 --duration 30s --mix health,request,quota,test --think 500ms
      the k6 test of the rate limiter's report
  telpher bench quota --agents 1 -n 1000 -c 50
      its Apache Bench test, with keep-alive and without
  telpher bench quota --peers bench/peers/bin --repeats 5 --duration 5s
      closed loop, 10,000 agents, beside others
  telpher bench quota --agents 10000,1 --batch 100 --pipeline 1,16
      one agent instead of many, many takes in a request, many requests under way
  telpher bench quota --door http,native --pipeline 1,16 --batch 100
      over the native protocol beside HTTP
  telpher bench quota --store redis --nodes 1,3 --agents 1,1000000 --door http,native --pipeline 16
      nodes that share a Redis: one agent, of which they lease, and so many that each take is a call
  telpher bench quota --rate 5000,20000
      on a schedule
  telpher bench quota --url http://127.0.0.1:3000 --vus 50
      another server of the same surface
  telpher bench quota --memory 1000000
      what a bucket takes of memory";

/// Measure quotas: takes over HTTP and the native protocol
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Agents that take part; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "10000",
        value_parser = clap::value_parser!(u32).range(1..=99_999_999))]
    agents: Vec<u32>,

    /// Connections
    #[arg(long, short, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,

    /// Length of a run, after its warm-up
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    duration: Duration,

    /// What comes before it and is not counted
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    warmup: Duration,

    /// Requests under way on each connection; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    pipeline: Vec<u32>,

    /// Takes in a request, where the server knows such requests; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST",
        value_parser = clap::value_parser!(u32).range(2..=1000))]
    batch: Vec<u32>,

    /// Limits that cover each take of a batch: 1, or 6 of three tiers by two units; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1", requires = "batch",
        value_parser = parse_limits)]
    limits: Vec<Limits>,

    /// Doors that takes come through to a node; cases for each
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST", default_value = "http",
        conflicts_with_all = ["vus", "requests", "rate", "url", "memory"])]
    door: Vec<Through>,

    /// Let nodes share a store; needs `redis-server`
    #[arg(long, value_enum, conflicts_with_all = ["vus", "requests", "rate", "limits", "url", "memory"])]
    store: Option<Store>,

    /// How many nodes share it; cases for each number
    #[arg(long, value_delimiter = ',', value_name = "LIST", requires = "store", default_value = "1,3",
        value_parser = clap::value_parser!(u32).range(1..=16))]
    nodes: Vec<u32>,

    /// Virtual users
    #[arg(long, value_name = "N", conflicts_with_all = ["requests", "rate", "batch"],
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    vus: Option<u32>,

    /// What each of them asks in turn
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        requires = "vus",
        default_value = "health,request,quota,test"
    )]
    mix: Vec<Asked>,

    /// How long each thinks then
    #[arg(long, value_name = "DURATION", requires = "vus", default_value = "500ms", value_parser = parse_duration)]
    think: Duration,

    /// Ask for so many takes
    #[arg(long, short = 'n', value_name = "N", conflicts_with_all = ["rate", "batch"],
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    requests: Option<u64>,

    /// Whether those keep their connection
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        requires = "requests",
        default_value = "off,on"
    )]
    keep_alive: Vec<KeepAlive>,

    /// Ask on a schedule for so many takes a second; each number is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", conflicts_with = "batch",
        value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: Vec<u64>,

    /// Ask a server that runs already
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    url: Option<String>,

    /// Ask once for each of so many agents, and tell what a bucket takes of memory
    #[arg(long, value_name = "N", conflicts_with_all = ["vus", "requests", "rate", "batch", "url"],
        value_parser = clap::value_parser!(u64).range(1..=99_999_999))]
    memory: Option<u64>,

    /// How long a server is left alone before its memory is read
    #[arg(long, value_name = "DURATION", default_value = "30s", requires = "memory", value_parser = parse_duration)]
    memory_rest: Duration,

    /// Runs of each case; an interval needs at least two
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,

    /// Directory on the disk for what servers keep; what is written in it is removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Asked {
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
enum Through {
    /// HTTP/1.1
    Http,
    /// The native protocol, with our own client
    Native,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Store {
    /// A redis-server that each run starts
    Redis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeepAlive {
    /// A connection for each
    Off,
    /// One after the other on a connection
    On,
}

fn parse_limits(text: &str) -> Result<Limits, String> {
    match text {
        "1" => Ok(Limits::One),
        "6" => Ok(Limits::Six),
        _ => Err("1, or 6".to_owned()),
    }
}

/// `http://HOST:PORT`, with or without what is around it.
fn parse_url(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("http://").unwrap_or(text);
    let address = address.strip_suffix('/').unwrap_or(address);
    let port = address
        .rsplit_once(':')
        .map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(address.to_owned()),
        _ => Err("not of the form http://HOST:PORT".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let matrix = args.matrix();
    if let Some(agents) = args.memory {
        return memory::run(args, &matrix, agents, args.memory_rest);
    }
    let styles = [Style::Limiter, Style::Table];
    let mut misses = Vec::new();
    args.outcome
        .of("quota", &styles, |surroundings, environment, show| {
            let results = quota::run(surroundings, &matrix, environment, show)?;
            misses = quota::misses(&results);
            Ok(results)
        })?;
    let hint = "the tables say what was answered; `telpher bench quota --help` says what must be";
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
            repeats: self.repeats,
            directory: self.dir.clone(),
        }
    }

    fn work(&self) -> Work {
        let (connections, window) = (self.connections, self.duration);
        match (self.vus, self.requests, self.rate.is_empty()) {
            (Some(vus), _, _) => Work::Mix {
                vus,
                steps: self.mix.iter().map(|asked| (*asked).into()).collect(),
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

impl From<Asked> for Step {
    fn from(asked: Asked) -> Self {
        match asked {
            Asked::Health => Self::Health,
            Asked::Request => Self::Request,
            Asked::Quota => Self::Quota,
            Asked::Test => Self::Test,
        }
    }
}

impl From<Through> for Door {
    fn from(through: Through) -> Self {
        match through {
            Through::Http => Self::Http,
            Through::Native => Self::Native,
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
    fn there_are_limits_for_one_and_for_three_tiers() {
        assert_eq!(parse_limits("1"), Ok(Limits::One));
        assert_eq!(parse_limits("6"), Ok(Limits::Six));
        assert!(parse_limits("2").is_err());
    }

    #[test]
    fn a_server_is_named_by_its_address() {
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

//! `telpher bench kafka`.

mod idle;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::model::Results;
use bench::report;
use bench::workload::kafka::{
    self, Acks, Doing, Durability, ID_SIZE, KeyPattern, Matrix, Packing, PayloadPattern, Subject,
    Topic,
};
use clap::ValueEnum;

use super::outcome::{Outcome, Style, check, failure};
use crate::failure::{Exit, Failure};
use crate::settings::parse_duration;

const ABOUT: &str = "\
Messages to topics over the Kafka protocol, on any broker that speaks it.

Without -b a node is started, and with --peers Apache Kafka beside it, if it is in that directory, with its \
defaults and with flush.messages=1, and the floors: a raw sync, and an echo that syncs before it answers. The \
brokers are started once, every run has a topic of its own, and the runs take turns. With -b the broker that runs \
there is measured, whatever it is; its CPU time is not known then.

produce is chronik-bench's test, with its flags: producers that each send the next message when they have the ack \
of the last, over one connection that makes batches of what waits, as librdkafka does. connections gives each \
producer a connection. bulk keeps eight connections full (1 KiB messages, linger 5 ms, 64 KiB batches). consume \
reads a topic over and over that was filled before. end-to-end sends one message at a time to a consumer that waits \
for it.

The client is our own, on this repository's codec of the protocol; it tries nothing again. Every latency is \
recorded, the clock stops with the last ack, an ack without an offset is a failure. Behind the window all that was \
acknowledged is read back, and a run that has lost, doubled or moved a message fails.

With --idle a node is given many partitions and groups, and left alone: what they cost in memory and CPU time. \
Then a log is written, if one is wanted, and the node is killed behind the last ack and started: how long until a \
fetch is answered, and whether every message and every offset is there.";

const EXAMPLES: &str = "\
Examples:
  telpher bench kafka -c 128 -s 256 -d 30s --acks 1,all
      Chronik's test, against a node of ours
  telpher bench kafka -d 5s --repeats 5 --durability disk,memory --peers bench/peers/bin
      beside Apache Kafka and the floors, with intervals
  telpher bench kafka -b localhost:9092 -c 128 -s 256 -d 30s -w 5s --acks all -t bench --create-topic -p 3
      another broker
  telpher bench kafka --mode bulk,consume --peers bench/peers/bin
      how much goes through
  telpher bench kafka --mode end-to-end --acks all --repeats 5 --peers bench/peers/bin
      how long a message takes to a consumer
  telpher bench kafka --rate-limit 20000 --acks all
      latencies at a rate
  telpher bench kafka --idle 1000 --idle-log 5GiB
      1,000 partitions and 10,000 groups left alone, then 5 GiB, a kill and a start";

/// Measure topics: messages over the Kafka protocol
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A broker that runs already [default: a node that is started]
    #[arg(long, short, visible_alias = "broker", value_name = "HOST:PORT",
        value_parser = parse_address)]
    bootstrap_servers: Option<String>,

    /// What is done
    #[arg(
        long,
        short,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "produce"
    )]
    mode: Vec<Mode>,

    /// Producers that each wait for the ack of their message
    #[arg(long, short, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: u32,

    /// Bytes of a payload
    #[arg(long, short = 's', value_name = "BYTES", default_value_t = 256,
        value_parser = clap::value_parser!(u64).range(ID_SIZE as u64..=16 << 20))]
    message_size: u64,

    /// Length of a run
    #[arg(long, short, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    duration: Duration,

    /// What comes before it and is not counted
    #[arg(long, short, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    warmup_duration: Duration,

    /// Messages of a run at most; 0 is as many as there is time for
    #[arg(long, short = 'n', value_name = "N", default_value_t = 0)]
    message_count: u64,

    /// Messages per second of all producers, on a schedule; 0 is as fast as they are acknowledged
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    rate_limit: u64,

    /// What an ack waits for: nothing, the leader, all replicas; each is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,all", value_parser = parse_acks)]
    acks: Vec<Acks>,

    /// How batches are compressed; each is a case
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "none"
    )]
    compression: Vec<Compression>,

    /// How long a batch waits for further messages
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=60_000))]
    linger_ms: u64,

    /// Bytes of a batch
    #[arg(long, value_name = "BYTES", default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(1..=64 << 20))]
    batch_size: u64,

    /// Requests under way on a connection
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_in_flight: u64,

    /// What keys are
    #[arg(long, value_enum, value_name = "PATTERN", default_value = "random")]
    key_pattern: Keys,

    /// What payloads are, behind 16 bytes that tell a message from all others
    #[arg(long, value_enum, value_name = "PATTERN", default_value = "random")]
    payload_pattern: Payloads,

    /// What an ack of a node means; each is a case
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "disk",
        conflicts_with = "bootstrap_servers"
    )]
    durability: Vec<Durable>,

    /// Partitions of a topic
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    partitions: i32,

    /// Replicas of each
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i16).range(1..=100))]
    replication_factor: i16,

    /// A topic for all runs [default: one for each run, removed behind it]
    #[arg(long, short, value_name = "NAME", requires = "bootstrap_servers")]
    topic: Option<String>,

    /// Make that topic, if it is not there
    #[arg(long, requires = "topic")]
    create_topic: bool,

    /// Remove that topic in the end
    #[arg(long, requires = "topic")]
    delete_topic_after: bool,

    /// Whether what was acknowledged is read back
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    verify: bool,

    /// Write a line for each run, with chronik-bench's columns
    #[arg(long, value_name = "FILE")]
    csv_output: Option<PathBuf>,

    /// Write an object for each run, with chronik-bench's fields
    #[arg(long, value_name = "FILE")]
    json_output: Option<PathBuf>,

    #[command(flatten)]
    idle: idle::IdleArgs,

    /// Runs of each case; an interval needs at least two
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,

    /// Directory on the disk to measure, for brokers that are started; what is written in it is removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Producers over one connection that batches
    Produce,
    /// A connection for each producer
    Connections,
    /// As much as goes through
    Bulk,
    /// Reading
    Consume,
    /// From a producer to a consumer that waits
    #[value(alias = "round-trip")]
    EndToEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compression {
    /// Not at all
    None,
    /// gzip
    Gzip,
    /// Snappy
    Snappy,
    /// LZ4
    Lz4,
    /// Zstandard
    Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Keys {
    /// `key-` and a random number
    Random,
    /// `key-` and the numbers from 0
    Sequential,
    /// One for all messages
    Fixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Payloads {
    /// Random bytes
    Random,
    /// Zeros
    Zeros,
    /// Words
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Durable {
    /// The message is on disk
    Disk,
    /// It is in memory
    Memory,
}

fn parse_acks(text: &str) -> Result<Acks, String> {
    match text {
        "0" => Ok(Acks::None),
        "1" => Ok(Acks::One),
        "all" | "-1" => Ok(Acks::All),
        _ => Err("0, 1 or all".to_owned()),
    }
}

/// The first of several brokers: it tells the others.
fn parse_address(text: &str) -> Result<String, String> {
    let first = text.split(',').next().unwrap_or_default().trim();
    let port = first.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(first.to_owned()),
        _ => Err("not of the form HOST:PORT".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(partitions) = args.idle.idle {
        return idle::run(&args.idle, partitions, &args.dir, &args.outcome);
    }
    let matrix = args.matrix();
    let styles = [Style::Chronik, Style::Table];
    let (mut misses, mut written) = (Vec::new(), Ok(()));
    let outcome = args
        .outcome
        .of("kafka", &styles, |surroundings, environment, show| {
            let results = kafka::run(surroundings, &matrix, environment, show)?;
            misses = kafka::misses(&results);
            written = args.write(&results);
            Ok(results)
        });
    written?;
    // What is lost is worse than what was refused, and told first.
    let hint = "the tables say what was read back; `telpher bench kafka --help` says what must be";
    check(&misses, hint)?;
    outcome
}

impl Args {
    fn matrix(&self) -> Matrix {
        Matrix {
            subject: match &self.bootstrap_servers {
                Some(address) => Subject::Broker(address.clone()),
                None => Subject::Node,
            },
            durabilities: self.durability.iter().map(|one| (*one).into()).collect(),
            doings: self.mode.iter().map(|mode| (*mode).into()).collect(),
            producers: self.concurrency,
            size: self.message_size as usize,
            acks: self.acks.clone(),
            packings: self.compression.iter().map(|one| (*one).into()).collect(),
            linger: Duration::from_millis(self.linger_ms),
            batch_size: self.batch_size as usize,
            requests_max: self.max_in_flight as usize,
            rate: self.rate_limit,
            messages: self.message_count,
            key: self.key_pattern.into(),
            payload: self.payload_pattern.into(),
            partitions: self.partitions,
            replicas: self.replication_factor,
            topic: self.topic.as_ref().map(|name| Topic {
                name: name.clone(),
                create: self.create_topic,
                delete: self.delete_topic_after,
            }),
            warmup: self.warmup_duration,
            window: self.duration,
            repeats: self.repeats,
            verify: self.verify,
            directory: self.dir.clone(),
        }
    }

    /// The files of chronik-bench, where they are wanted.
    fn write(&self, results: &Results) -> Result<(), Failure> {
        if let Some(path) = &self.csv_output {
            write(path, &report::csv(results))?;
        }
        if let Some(path) = &self.json_output {
            write(path, &report::json(results).map_err(failure)?)?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        Failure::new(
            Exit::Failed,
            format!("cannot write {}: {error}", path.display()),
        )
        .hint("everything that was measured is in the directory of the results as well")
    })
}

impl From<Mode> for Doing {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Produce => Self::Produce,
            Mode::Connections => Self::Connections,
            Mode::Bulk => Self::Bulk,
            Mode::Consume => Self::Consume,
            Mode::EndToEnd => Self::EndToEnd,
        }
    }
}

impl From<Compression> for Packing {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::None => Self::None,
            Compression::Gzip => Self::Gzip,
            Compression::Snappy => Self::Snappy,
            Compression::Lz4 => Self::Lz4,
            Compression::Zstd => Self::Zstd,
        }
    }
}

impl From<Keys> for KeyPattern {
    fn from(keys: Keys) -> Self {
        match keys {
            Keys::Random => Self::Random,
            Keys::Sequential => Self::Sequential,
            Keys::Fixed => Self::Fixed,
        }
    }
}

impl From<Payloads> for PayloadPattern {
    fn from(payloads: Payloads) -> Self {
        match payloads {
            Payloads::Random => Self::Random,
            Payloads::Zeros => Self::Zeros,
            Payloads::Text => Self::Text,
        }
    }
}

impl From<Durable> for Durability {
    fn from(durable: Durable) -> Self {
        match durable {
            Durable::Disk => Self::Disk,
            Durable::Memory => Self::Memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_are_written_as_clients_write_them() {
        let parsed = ["0", "1", "all", "-1"].map(parse_acks);
        assert_eq!(
            parsed,
            [Acks::None, Acks::One, Acks::All, Acks::All].map(Ok)
        );
        assert!(parse_acks("2").is_err());
    }

    #[test]
    fn of_several_brokers_the_first_is_asked() {
        assert_eq!(parse_address("a:1, b:2"), Ok("a:1".to_owned()));
        assert!(parse_address("localhost").is_err());
    }
}

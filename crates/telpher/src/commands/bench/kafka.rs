//! `telpher bench kafka`: messages to topics over the Kafka protocol.

mod faults;
mod idle;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::model::Results;
use bench::report;
use bench_kafka::{
    self as kafka, Acks, Doing, Durability, ID_SIZE, KeyPattern, Matrix, Packing, PayloadPattern,
    Subject, Topic,
};
use clap::ValueEnum;

use super::outcome::{Outcome, Style, check, failure};
use super::runs::DiskRuns;
use crate::settings::parse_duration;
use console::{Exit, Failure};

const ABOUT: &str = "\
Messages to topics over the Kafka protocol, with any broker that implements it.

Without -b the benchmark starts a node. With --peers it also measures Apache Kafka, with its defaults and \
with flush.messages=1, and the floors: a raw sync, and an echo that syncs before it answers. Brokers \
are started once, every run has a topic of its own, and the runs are interleaved. With -b it measures a \
running broker; its CPU time is unknown then.

Mode produce is the test of chronik-bench, with its flags: producers that each send a message after the \
ack of the last one, over one connection that batches waiting messages, as librdkafka does. connections \
gives each producer a connection. bulk keeps eight connections busy (1 KiB messages, linger 5 ms, 64 KiB \
batches). consume reads a filled topic repeatedly. end-to-end sends one message at a time to a waiting \
consumer.

--cluster 3 starts three nodes and measures them beside one node alone. With --peers it also measures as \
many brokers of Apache Kafka, and the quorum floor: three processes that append, sync and answer at the \
second of three syncs. All nodes share the cores and the disk of this machine, so a node has less of both \
than one alone; CPU time is that of all nodes, and of each in the results.

--fault injects faults into that cluster while producers write with acks=all, and measures the time until \
the first ack of a request that was sent after the fault, and the changes of leader. Before that it measures \
the CPU time and memory of the idle nodes. Producers are idempotent and repeat a message \
until it is acknowledged, as the clients of Kafka do. At the end all messages are read back; the command \
fails if one is lost, duplicated or moved, or was never acknowledged. Partitions of the network need \
network namespaces: `cargo xtask cluster` makes them.

The client is Telpher's own, with this repository's codec of the protocol; it does not retry. Every \
latency is recorded, the clock stops with the last ack, and an ack without an offset is a failure. After \
the window all acknowledged messages are read back; a run that has lost, duplicated or moved a message \
fails.

--idle creates many partitions and groups and measures their memory and CPU time without load. Then it \
writes a log if --idle-log is given, kills the node after the last ack and starts it again: it measures \
the time to the first answered fetch, and checks every message and every offset.";

const EXAMPLES: &str = "\
Examples:
  telpher bench kafka -c 128 -s 256 -d 30s --acks 1,all
      the test of Chronik with a Telpher node
  telpher bench kafka -d 5s --repeats 5 --durability disk,memory --peers bench/peers/bin
      compared with Apache Kafka and the floors, with intervals
  telpher bench kafka -b localhost:9092 -c 128 -s 256 -d 30s -w 5s --acks all -t bench --create-topic -p 3
      another broker
  telpher bench kafka --mode bulk,consume --peers bench/peers/bin
      maximum throughput
  telpher bench kafka --mode end-to-end --acks all --repeats 5 --peers bench/peers/bin
      latency from producer to consumer
  telpher bench kafka --rate-limit 20000 --acks all
      latencies at a fixed rate
  telpher bench kafka --cluster 3 --mode produce,connections -c 128,1024 -d 5s --repeats 5 --peers bench/peers/bin
      three nodes compared with one, with three brokers of Apache Kafka and with the quorum floor
  telpher bench kafka --cluster 3 --fault kill-leader --repeats 50 -p 1000
      50 kills of the leader under load
  telpher bench kafka --idle 1000 --idle-log 5GiB
      1,000 idle partitions and 10,000 groups, then a log of 5 GiB, a kill and a start";

const DIR: &str =
    "Directory on the disk to measure, for started brokers; their data is removed at the end";

/// Measure topics: messages over the Kafka protocol
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
#[command(mut_arg("dir", |dir| dir.help(DIR)))]
pub(crate) struct Args {
    /// Running broker to measure [default: a new node]
    #[arg(long, short, visible_alias = "broker", value_name = "HOST:PORT",
        value_parser = parse_address)]
    bootstrap_servers: Option<String>,

    /// Modes to measure
    #[arg(
        long,
        short,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "produce"
    )]
    mode: Vec<Mode>,

    /// Numbers of producers, each with one message in flight; each is a case
    #[arg(long, short, value_delimiter = ',', value_name = "LIST", default_value = "128",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: Vec<u32>,

    /// Bytes of a payload
    #[arg(long, short = 's', value_name = "BYTES", default_value_t = 256,
        value_parser = clap::value_parser!(u64).range(ID_SIZE as u64..=16 << 20))]
    message_size: u64,

    /// Length of a run
    #[arg(long, short, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    duration: Duration,

    /// Warm-up before the run, which is not counted
    #[arg(long, short, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    warmup_duration: Duration,

    /// Maximum number of messages of a run; 0 is no limit
    #[arg(long, short = 'n', value_name = "N", default_value_t = 0)]
    message_count: u64,

    /// Messages per second of all producers together; 0 is as fast as they are acknowledged
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    rate_limit: u64,

    /// Acks: 0 (none), 1 (leader) or all (replicas); each is a case
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "1,all", value_parser = parse_acks)]
    acks: Vec<Acks>,

    /// Compression of batches; each is a case
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "none"
    )]
    compression: Vec<Compression>,

    /// Time that a batch waits for further messages
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=60_000))]
    linger_ms: u64,

    /// Maximum bytes of a batch
    #[arg(long, value_name = "BYTES", default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(1..=64 << 20))]
    batch_size: u64,

    /// Maximum number of requests in flight per connection
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_in_flight: u64,

    /// Pattern of keys
    #[arg(long, value_enum, value_name = "PATTERN", default_value = "random")]
    key_pattern: Keys,

    /// Pattern of payloads, after 16 bytes that identify the message
    #[arg(long, value_enum, value_name = "PATTERN", default_value = "random")]
    payload_pattern: Payloads,

    /// Durability of acknowledged messages in a node; each is a case
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "disk",
        conflicts_with = "bootstrap_servers"
    )]
    durability: Vec<DurabilityArg>,

    /// Number of partitions of a topic
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    partitions: i32,

    /// Number of replicas of a partition
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i16).range(1..=100))]
    replication_factor: i16,

    /// Topic of all runs [default: a new topic for each run, deleted afterwards]
    #[arg(long, short, value_name = "NAME", requires = "bootstrap_servers")]
    topic: Option<String>,

    /// Create the topic if it does not exist
    #[arg(long, requires = "topic")]
    create_topic: bool,

    /// Delete the topic at the end
    #[arg(long, requires = "topic")]
    delete_topic_after: bool,

    /// Read acknowledged messages back
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    verify: bool,

    /// Write a CSV line for each run, with the columns of chronik-bench
    #[arg(long, value_name = "FILE")]
    csv_output: Option<PathBuf>,

    /// Write a JSON object for each run, with the fields of chronik-bench
    #[arg(long, value_name = "FILE")]
    json_output: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Cluster")]
    cluster: faults::ClusterArgs,

    #[command(flatten)]
    idle: idle::IdleArgs,

    #[command(flatten)]
    runs: DiskRuns,

    #[command(flatten, next_help_heading = "Results")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Producers that share one batching connection
    Produce,
    /// A connection for each producer
    Connections,
    /// Maximum throughput
    Bulk,
    /// Reads of a filled topic
    Consume,
    /// Latency from a producer to a waiting consumer
    #[value(alias = "round-trip")]
    EndToEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compression {
    /// No compression
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
    /// The same key for all messages
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
enum DurabilityArg {
    /// The message is on disk
    Disk,
    /// The message is in memory
    Memory,
}

fn parse_acks(text: &str) -> Result<Acks, String> {
    match text {
        "0" => Ok(Acks::None),
        "1" => Ok(Acks::One),
        "all" | "-1" => Ok(Acks::All),
        _ => Err("write 0, 1 or all".to_owned()),
    }
}

/// Parses a list of brokers and returns the first, from which the client learns the others.
fn parse_address(text: &str) -> Result<String, String> {
    let first = text.split(',').next().unwrap_or_default().trim();
    let port = first.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(first.to_owned()),
        _ => Err("write HOST:PORT".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(partitions) = args.idle.idle {
        return idle::run(&args.idle, partitions, &args.runs.dir, &args.outcome);
    }
    if let Some(faults) = args.cluster.faults(args) {
        return faults::run(&args.outcome, &faults);
    }
    let matrix = args.matrix();
    let styles = [Style::Chronik, Style::Table];
    let (mut misses, mut written) = (Vec::new(), Ok(()));
    let outcome = args.outcome.of("kafka", &styles, |surroundings, runner| {
        let results = kafka::run(surroundings, &matrix, runner)?;
        misses = kafka::misses(&results);
        written = args.write(&results);
        Ok(results)
    });
    written?;
    // Lost messages are worse than refused ones, so they are reported first.
    let hint = "see the tables, and `telpher bench kafka --help` for the checks";
    check(&misses, hint)?;
    outcome
}

impl Args {
    fn matrix(&self) -> Matrix {
        Matrix {
            subject: match (&self.bootstrap_servers, self.cluster.cluster) {
                (Some(address), _) => Subject::Broker(address.clone()),
                (None, Some(nodes)) => Subject::Cluster(nodes),
                (None, None) => Subject::Node,
            },
            durabilities: self.durability.iter().map(|one| (*one).into()).collect(),
            doings: self.mode.iter().map(|mode| (*mode).into()).collect(),
            producers: self.concurrency.clone(),
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
            repeats: self.runs.repeats,
            verify: self.verify,
            directory: self.runs.dir.clone(),
        }
    }

    /// Writes the requested files in the formats of chronik-bench.
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
        .hint("the results are also in the results directory")
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

impl From<DurabilityArg> for Durability {
    fn from(durable: DurabilityArg) -> Self {
        match durable {
            DurabilityArg::Disk => Self::Disk,
            DurabilityArg::Memory => Self::Memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_flag_accepts_0_1_all_and_minus_1() {
        let parsed = ["0", "1", "all", "-1"].map(parse_acks);
        assert_eq!(
            parsed,
            [Acks::None, Acks::One, Acks::All, Acks::All].map(Ok)
        );
        assert!(parse_acks("2").is_err());
    }

    #[test]
    fn the_first_of_several_brokers_is_used() {
        assert_eq!(parse_address("a:1, b:2"), Ok("a:1".to_owned()));
        assert!(parse_address("localhost").is_err());
    }
}

//! `bench kafka`: messages to topics of any broker over the Kafka protocol.
//!
//! | mode | load |
//! |---|---|
//! | `produce` | producers that share one connection, which batches for all of them |
//! | `connections` | the same producers with a connection each |
//! | `bulk` | eight connections that always have more to send than fits into a batch |
//! | `consume` | no producer: a topic that was filled before is read repeatedly |
//! | `end-to-end` | one producer; a latency ends when the message reaches a waiting consumer |
//!
//! | target | server |
//! |---|---|
//! | `telpher` | a node; `durability=disk` acknowledges after a sync, `durability=memory` before it |
//! | `kafka` | Apache Kafka with its defaults: acknowledged messages are in the page cache |
//! | `kafka-flush` | Apache Kafka with `flush.messages=1`: acknowledged messages are on disk |
//! | `broker` | a broker that is already running |
//! | `disk-floor`, `durable-echo`, `floor`, `stream-floor` | the minimum work that such messages need |
//!
//! The client is our own, on our own codec: one thread, one `epoll`. A producer is a slot that
//! waits for the ack of its message before it sends the next. Messages become batches by the rules
//! of librdkafka and the Java client (linger time, batch size, requests in flight). Every latency
//! is recorded, the window closes with the last ack, an ack without an offset is a failure, and
//! nothing is retried. After the window all acknowledged messages are read back.
//!
//! [`idle`] measures the cost of unused partitions and groups, and how long a start takes with all
//! of them and a long log.

mod acknowledged;
mod batches;
mod brokers;
mod compare;
mod consume;
mod end_to_end;
#[cfg(test)]
mod fake;
mod fetch;
mod floors;
pub mod idle;
mod link;
mod matrix;
mod message;
mod produce;
mod session;
mod socket;
mod suite;
mod topic;
mod verify;

use serde::{Deserialize, Serialize};

pub use compare::misses;
pub use matrix::{Doing, Durability, Matrix, Subject, Topic};
pub use message::{ID_SIZE, KeyPattern, PayloadPattern};
use recordbatch::Compression;
pub use suite::run;

use crate::measurement::Arrivals;
use crate::model::{CountedBy, Mode};
use crate::tally::Tally;
use crate::workload::role::{Failure, RoleSpec};

/// Producers that share one connection.
pub const PRODUCE: Mode = Mode::new("produce", CountedBy::Sender, true);
/// A connection for each producer.
pub const CONNECTIONS: Mode = Mode::new("connections", CountedBy::Sender, true);
/// Maximum throughput of large batches.
pub const BULK: Mode = Mode::new("bulk", CountedBy::Sender, true);
/// Reading a filled topic.
pub const CONSUME: Mode = Mode::new("consume", CountedBy::Sender, false);
/// Latency from a producer to a consumer.
pub const END_TO_END: Mode = Mode::new("end-to-end", CountedBy::Sender, true);

/// Acknowledgement that a producer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acks {
    /// No acknowledgement.
    None,
    /// Acknowledgement of the leader.
    One,
    /// Acknowledgement of all in-sync replicas.
    All,
}

impl Acks {
    /// Returns the name in the configuration of Kafka's clients.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "0",
            Self::One => "1",
            Self::All => "all",
        }
    }

    /// Returns the value on the wire.
    fn number(self) -> i16 {
        match self {
            Self::None => 0,
            Self::One => 1,
            Self::All => -1,
        }
    }
}

/// Compression of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// No compression.
    None,
    /// gzip.
    Gzip,
    /// Snappy, in xerial's framing.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Packing {
    /// Returns the name in Kafka's configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.compression().as_str()
    }

    fn compression(self) -> Compression {
        match self {
            Self::None => Compression::None,
            Self::Gzip => Compression::Gzip,
            Self::Snappy => Compression::Snappy,
            Self::Lz4 => Compression::Lz4,
            Self::Zstd => Compression::Zstd,
        }
    }
}

/// Parameters of a load process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LoadSpec {
    /// `HOST:PORT` of any broker of the cluster.
    address: String,
    topic: String,
    /// Tag that identifies the messages of this run.
    tag: u32,
    work: Work,
    warmup_ns: u64,
    window_ns: u64,
    /// True if acknowledged messages are recorded, to be read back.
    verify: bool,
}

impl RoleSpec for LoadSpec {
    fn role(&self) -> &'static str {
        "kafka-load"
    }
}

/// Kind of load.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Work {
    Produce(ProduceSpec),
    Consume,
    EndToEnd { size: usize, acks: Acks },
}

/// Producers, and the batching of their messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ProduceSpec {
    connections: u32,
    /// Producers that share a connection, each with one message in flight.
    in_flight: u32,
    /// Size of a payload in bytes.
    size: usize,
    /// Messages per second of all producers; 0 means as fast as they are acknowledged.
    rate: u64,
    /// Maximum messages of the window; 0 means no limit.
    messages: u64,
    acks: Acks,
    packing: Packing,
    linger_ns: u64,
    batch_size: usize,
    /// Requests in flight on a connection.
    requests_max: usize,
    key: KeyPattern,
    payload: PayloadPattern,
}

/// Counts of the produced messages of a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ProduceCounts {
    tally: Tally,
    window_ns: u64,
    /// Number of produce requests.
    requests: u64,
}

/// Counts of the consumed messages of a window.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct ConsumeCounts {
    messages: u64,
    /// Bytes of batches as stored.
    bytes: u64,
    /// Batches with a wrong checksum.
    damaged: u64,
    arrivals: Option<Arrivals>,
    window_ns: u64,
}

/// Plays the role of the load.
///
/// # Errors
/// When the broker cannot be reached, stops answering, or sends an invalid answer.
pub(super) fn play(spec: &LoadSpec) -> Result<(), Failure> {
    match &spec.work {
        Work::Produce(produce) => produce::play(spec, produce),
        Work::Consume => consume::play(spec),
        Work::EndToEnd { size, acks } => end_to_end::play(spec, *size, *acks),
    }
}

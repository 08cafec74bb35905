//! `bench kafka`: messages to topics over the Kafka protocol, from any broker that speaks it.
//!
//! | mode | who sends |
//! |---|---|
//! | `produce` | as many producers as said over one connection, which batches for all of them |
//! | `connections` | the same producers with a connection each |
//! | `bulk` | eight connections that always have more to send than fits into a batch |
//! | `consume` | nobody: a topic that was filled before is read over and over |
//! | `end-to-end` | one producer; a latency ends when the message is at a consumer that waits for it |
//!
//! | target | what it is |
//! |---|---|
//! | `telpher` | a node; `durability=disk` acknowledges what is on disk, `durability=memory` what is not |
//! | `kafka` | Apache Kafka with its defaults: what is acknowledged is in the page cache |
//! | `kafka-flush` | the same with `flush.messages=1`: what is acknowledged is on disk |
//! | `broker` | one that runs already |
//! | `disk-floor`, `durable-echo`, `floor`, `stream-floor` | the least that such messages need |
//!
//! The client is our own, on our own codec: one thread, one `epoll`. A producer is a place that waits for
//! the ack of its message before it sends the next; messages become batches by the rules of librdkafka and
//! the Java client (lingering, size of a batch, requests under way). Every latency is recorded, the window
//! closes with the last ack, an ack without an offset is a failure, nothing is tried again. Behind the
//! window everything that was acknowledged is read back.
//!
//! What partitions and groups cost that nobody uses, and how long a start takes with all of them and a
//! long log, is measured by [`idle`].

mod acked;
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
use crate::workload::role::Failure;

/// Producers over one connection.
pub const PRODUCE: Mode = Mode::new("produce", CountedBy::Sender, true);
/// A connection for each producer.
pub const CONNECTIONS: Mode = Mode::new("connections", CountedBy::Sender, true);
/// As much as goes through.
pub const BULK: Mode = Mode::new("bulk", CountedBy::Sender, true);
/// Reading.
pub const CONSUME: Mode = Mode::new("consume", CountedBy::Sender, false);
/// From a producer to a consumer.
pub const END_TO_END: Mode = Mode::new("end-to-end", CountedBy::Sender, true);

/// What an acknowledgement waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acks {
    /// There is none.
    None,
    /// The leader.
    One,
    /// All replicas in sync.
    All,
}

impl Acks {
    /// As Kafka's clients write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "0",
            Self::One => "1",
            Self::All => "all",
        }
    }

    /// As it is on the wire.
    fn number(self) -> i16 {
        match self {
            Self::None => 0,
            Self::One => 1,
            Self::All => -1,
        }
    }
}

/// How batches are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// Not at all.
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
    /// As Kafka's configuration calls it.
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

/// What a load does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LoadSpec {
    /// `HOST:PORT` of any broker of the cluster.
    address: String,
    topic: String,
    /// By which the messages of this run are known.
    tag: u32,
    work: Work,
    warmup_ns: u64,
    window_ns: u64,
    /// Whether what is acknowledged is remembered, to be read back.
    verify: bool,
}

/// What kind of load.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Work {
    Produce(ProduceSpec),
    Consume,
    EndToEnd { size: usize, acks: Acks },
}

/// Producers, and how their messages become batches.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ProduceSpec {
    connections: u32,
    /// Producers that share a connection, each with one message under way.
    in_flight: u32,
    /// Bytes of a payload.
    size: usize,
    /// Messages per second of all of them; 0 is as fast as they are acknowledged.
    rate: u64,
    /// Messages of the window at most; 0 is as many as there is time for.
    messages: u64,
    acks: Acks,
    packing: Packing,
    linger_ns: u64,
    batch_size: usize,
    /// Requests under way on a connection.
    requests_max: usize,
    key: KeyPattern,
    payload: PayloadPattern,
}

/// What was produced in a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Produced {
    tally: Tally,
    window_ns: u64,
    /// Produce requests.
    requests: u64,
}

/// What was consumed in a window.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Consumed {
    messages: u64,
    /// Bytes of batches as they are stored.
    bytes: u64,
    /// Batches whose checksum is wrong.
    damaged: u64,
    arrivals: Option<Arrivals>,
    window_ns: u64,
}

/// Plays the role.
///
/// # Errors
/// When the broker cannot be reached, falls silent, or answers in a way that cannot be read.
pub(super) fn play(spec: &LoadSpec) -> Result<(), Failure> {
    match &spec.work {
        Work::Produce(produce) => produce::play(spec, produce),
        Work::Consume => consume::play(spec),
        Work::EndToEnd { size, acks } => end_to_end::play(spec, *size, *acks),
    }
}

//! Parameters of a load process, and its counts.

use bench::measurement::Arrivals;
use bench::tally::Tally;
use bench::workload::role::RoleSpec;
use recordbatch::Compression;
use serde::{Deserialize, Serialize};

use super::message::{KeyPattern, PayloadPattern};

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
    pub(crate) fn number(self) -> i16 {
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

    pub(crate) fn compression(self) -> Compression {
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
pub struct LoadSpec {
    /// `HOST:PORT` of any broker of the cluster.
    pub(crate) address: String,
    pub(crate) topic: String,
    /// Tag that identifies the messages of this run.
    pub(crate) tag: u32,
    pub(crate) work: Work,
    pub(crate) warmup_ns: u64,
    pub(crate) window_ns: u64,
    /// True if acknowledged messages are recorded, to be read back.
    pub(crate) verify: bool,
}

impl RoleSpec for LoadSpec {
    fn role(&self) -> &'static str {
        "kafka-load"
    }
}

/// Kind of load.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    Produce(ProduceSpec),
    Consume,
    EndToEnd { size: usize, acks: Acks },
}

/// Producers, and the batching of their messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProduceSpec {
    pub(crate) connections: u32,
    /// Producers that share a connection, each with one message in flight.
    pub(crate) in_flight: u32,
    /// Size of a payload in bytes.
    pub(crate) size: usize,
    /// Messages per second of all producers; 0 means as fast as they are acknowledged.
    pub(crate) rate: u64,
    /// Maximum messages of the window; 0 means no limit.
    pub(crate) messages: u64,
    pub(crate) acks: Acks,
    pub(crate) packing: Packing,
    pub(crate) linger_ns: u64,
    pub(crate) batch_size: usize,
    /// Requests in flight on a connection.
    pub(crate) requests_max: usize,
    pub(crate) key: KeyPattern,
    pub(crate) payload: PayloadPattern,
}

/// Counts of the produced messages of a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProduceCounts {
    pub(crate) tally: Tally,
    pub(crate) window_ns: u64,
    /// Number of produce requests.
    pub(crate) requests: u64,
}

/// Counts of the consumed messages of a window.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ConsumeCounts {
    pub(crate) messages: u64,
    /// Bytes of batches as stored.
    pub(crate) bytes: u64,
    /// Batches with a wrong checksum.
    pub(crate) damaged: u64,
    pub(crate) arrivals: Option<Arrivals>,
    pub(crate) window_ns: u64,
}

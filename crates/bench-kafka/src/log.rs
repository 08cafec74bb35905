//! Log that is written as fast as possible, and read back after the broker was restarted.

use super::produce::Load;
use super::session::Session;
use super::topic::{self, OffsetKind};
use super::{Acks, KeyPattern, LoadSpec, Packing, PayloadPattern, ProduceSpec, Work};
use bench::measurement::Verification;
use bench::workload::role::Failure;
use meter::clock::now_ns;

/// Size of a message, and messages in flight: enough for a batch of several messages to each of
/// many partitions.
const SIZE: usize = 4 << 10;
const IN_FLIGHT: u32 = 8 << 10;
const BATCH_SIZE: usize = 64 << 10;
const LINGER_NS: u64 = 5_000_000;
const REQUESTS_MAX: usize = 5;

/// Time limit of writing the log: a day.
const TIME_NS: u64 = 24 * 3600 * 1_000_000_000;

/// A log to write.
pub struct Log {
    load: Load,
    topic: String,
    /// Start offsets of the partitions.
    begin: Vec<i64>,
}

/// A written log.
pub struct WrittenLog {
    log: Log,
    acked: u64,
    failed: u64,
}

impl Log {
    /// Connects to the broker.
    ///
    /// # Errors
    /// When the broker cannot be reached.
    pub fn open(address: &str, topic: &str) -> Result<Self, Failure> {
        let produce = ProduceSpec {
            connections: 1,
            in_flight: IN_FLIGHT,
            size: SIZE,
            rate: 0,
            messages: 0,
            acks: Acks::All,
            packing: Packing::None,
            linger_ns: LINGER_NS,
            batch_size: BATCH_SIZE,
            requests_max: REQUESTS_MAX,
            key: KeyPattern::Random,
            payload: PayloadPattern::Random,
        };
        let spec = LoadSpec {
            address: address.to_owned(),
            topic: topic.to_owned(),
            tag: now_ns() as u32,
            work: Work::Produce(produce.clone()),
            warmup_ns: 0,
            window_ns: TIME_NS,
            verify: true,
        };
        let mut session = Session::open(address)?;
        let layout = topic::layout(&mut session, topic)?;
        Ok(Self {
            begin: topic::offsets(&layout, topic, OffsetKind::Next)?,
            load: Load::open(&spec, &produce, &layout, &session)?,
            topic: topic.to_owned(),
        })
    }

    /// Writes messages of `bytes` in total, and waits for all acks.
    ///
    /// # Errors
    /// When the broker stops answering.
    pub fn fill(mut self, bytes: u64) -> Result<WrittenLog, Failure> {
        let produced = self.load.produce(TIME_NS, bytes.div_ceil(SIZE as u64))?;
        let measured = produced.tally.over(produced.window_ns);
        Ok(WrittenLog {
            log: self,
            acked: measured.completed,
            failed: measured.errors.values().sum(),
        })
    }
}

impl WrittenLog {
    /// Returns the bytes of the acknowledged messages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.acked * SIZE as u64
    }

    /// Returns the number of messages that were not acknowledged.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Reads back everything that was acknowledged, from a broker that may have a new address.
    ///
    /// # Errors
    /// When the broker cannot be read from.
    pub fn read_back(mut self, address: &str) -> Result<Verification, Failure> {
        let layout = topic::layout(&mut Session::open(address)?, &self.log.topic)?;
        self.log.load.verify(&layout, self.log.begin)
    }
}

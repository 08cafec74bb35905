//! A log that is written as fast as it goes, and read back from a broker that was started since.

use crate::clock::now_ns;
use crate::measurement::Verified;
use crate::workload::kafka::produce::Load;
use crate::workload::kafka::session::Session;
use crate::workload::kafka::topic::{self, End};
use crate::workload::kafka::{
    Acks, KeyPattern, LoadSpec, Packing, PayloadPattern, ProduceSpec, Work,
};
use crate::workload::role::Failure;

/// Bytes of a message, and how many of them are under way: enough for a batch of several to each of
/// many partitions.
const SIZE: usize = 4 << 10;
const IN_FLIGHT: u32 = 8 << 10;
const BATCH_SIZE: usize = 64 << 10;
const LINGER_NS: u64 = 5_000_000;
const REQUESTS_MAX: usize = 5;

/// It is written in whatever time that takes, up to a day.
const TIME_NS: u64 = 24 * 3600 * 1_000_000_000;

/// A log that is to be written.
pub(super) struct Log {
    load: Load,
    topic: String,
    /// Where its partitions began.
    begin: Vec<i64>,
}

/// One that was written.
pub(super) struct Written {
    log: Log,
    acked: u64,
    failed: u64,
}

impl Log {
    /// Connects.
    pub(super) fn open(address: &str, topic: &str) -> Result<Self, Failure> {
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
            begin: topic::offsets(&layout, topic, End::Next)?,
            load: Load::open(&spec, &produce, &layout, &session)?,
            topic: topic.to_owned(),
        })
    }

    /// Writes messages of so many bytes, and waits for all acks.
    pub(super) fn fill(mut self, bytes: u64) -> Result<Written, Failure> {
        let produced = self.load.produce(TIME_NS, bytes.div_ceil(SIZE as u64))?;
        let measured = produced.tally.over(produced.window_ns);
        Ok(Written {
            log: self,
            acked: measured.completed,
            failed: measured.errors.values().sum(),
        })
    }
}

impl Written {
    /// Bytes of the messages that were acknowledged.
    pub(super) fn bytes(&self) -> u64 {
        self.acked * SIZE as u64
    }

    /// Messages that were not.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// Looks for everything that was acknowledged, at a broker that may have another address by now.
    pub(super) fn read_back(mut self, address: &str) -> Result<Verified, Failure> {
        let layout = topic::layout(&mut Session::open(address)?, &self.log.topic)?;
        self.log.load.verify(&layout, self.log.begin)
    }
}

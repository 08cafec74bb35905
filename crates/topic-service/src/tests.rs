//! Topics of a node on a disk in memory and a clock that is moved by hand.

mod catalogue;
mod catch_up_reads;
mod clock_steps;
mod compaction;
mod compaction_limits;
mod compaction_on_full_disk;
mod compressed_batch_readers;
mod consumer_groups;
mod foreign_markers;
mod full_disk;
mod leader_epochs;
mod memory_durability;
mod persistence;
mod prepared_batches;
mod produce_and_fetch;
mod record_age;
mod retention;
mod sasl_users;
mod transactional_writes;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Poll, Waker};

use journal::disk::SimulatedDisk;
use journal::disk::simulated::Fate;
use journal::{Background, Line};
use platform::testing::{journal_on, ports};
use platform::{Alone, Clock, Inline, NotDurable, Pending, Platform};
use recordbatch::{Batch, Builder, Producer as BatchProducer, Rejected, Template};
use store::{Health, Store};
use topics::groups::{
    Caller, Join, Leaver, Mark, Protocol, Refused, State as GroupState, Synchronize,
};
use topics::{
    Alter, Answer as Producer, Claim, Config, Credential, Denied, Ending, Find, Hash, Isolation,
    Key, OutOfRange, ProducerId, Refusal, State as TransactionState, User, UserChange, UserError,
};

use super::*;

/// Wall-clock time at the start of the first node, in milliseconds.
const START_MS: u64 = 1_700_000_000_000;

/// The clock that never steps, in milliseconds, and how far the wall clock is ahead of it.
struct ManualClock(AtomicU64, AtomicI64);

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed) * 1_000_000
    }

    fn unix_ms(&self) -> u64 {
        let ahead_ms = self.1.load(Ordering::Relaxed);
        self.0
            .load(Ordering::Relaxed)
            .saturating_add_signed(ahead_ms)
    }
}

/// No connected clients.
struct NoSessions;

impl UserSessions for NoSessions {
    fn dismiss(&self, _: &dyn Fn(&User) -> Option<String>) {}
}

/// The topics of a node, its disk and its clock.
struct World {
    store: Arc<Store>,
    health: Health,
    topics: Topics,
    line: Line,
    background: Background,
    disk: SimulatedDisk,
    clock: Arc<ManualClock>,
    starts: u64,
    options: Options,
}

impl World {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let clock = Arc::new(ManualClock(AtomicU64::new(START_MS), AtomicI64::new(0)));
        Self::start(SimulatedDisk::new(1), clock, 1, options)
    }

    fn start(disk: SimulatedDisk, clock: Arc<ManualClock>, starts: u64, options: Options) -> Self {
        let (journal, line, background) = journal_on(&disk, starts).unwrap();
        let ports = ports(clock.clone(), starts);
        let membership = Arc::new(Alone::new(journal.id()));
        let platform = Arc::new(Platform::new(ports, Arc::new(Inline), membership));
        let store = Arc::new(Store::open(journal, 1_000_000, 0).unwrap());
        let health = Health::new(platform.clone(), store.clone(), None);
        let topics = Topics::open(
            platform,
            store.clone(),
            options.clone(),
            None,
            Arc::new(NoSessions),
        );
        let mut world = Self {
            topics: topics.unwrap(),
            store,
            health,
            line,
            background,
            disk,
            clock,
            starts,
            options,
        };
        world.sync();
        world
    }

    /// Simulates a power failure: unsynced data is lost.
    fn crash(self) -> Self {
        let Self {
            store,
            health,
            topics,
            line,
            background,
            disk,
            clock,
            starts,
            options,
        } = self;
        drop((store, health, topics, line, background));
        disk.crash_with(|_| Fate::Lost);
        Self::start(disk, clock, starts + 1, options)
    }

    /// Syncs everything that waits for the disk.
    fn sync(&mut self) {
        for _ in 0..20 {
            self.line.step();
            self.background.step(self.clock.unix_ms());
        }
    }

    /// Advances the clock, with the sweeps that a running node makes.
    fn pass_ms(&mut self, ms: u64) {
        let mut left = ms;
        while left > 0 {
            let step = left.min((ms / 50).max(100));
            self.clock.0.fetch_add(step, Ordering::Relaxed);
            self.topics.sweep();
            self.sync();
            left -= step;
        }
    }

    /// Syncs everything and returns the answer.
    fn acknowledged<T, E: From<NotDurable>>(&mut self, mut pending: Pending<T, E>) -> Result<T, E> {
        for _ in 0..20 {
            if let Poll::Ready(answer) = pending.poll_answer(Waker::noop()) {
                return answer;
            }
            self.sync();
            self.topics.sweep();
        }
        panic!("nobody answers");
    }

    fn create(&mut self, name: &str, configs: &[(&str, &str)]) -> Arc<Topic> {
        let configs: Vec<_> = configs.iter().map(|(key, it)| (*key, Some(*it))).collect();
        let topic = NewTopic {
            name,
            partitions: Some(1),
            configs: &configs,
        };
        let created = self.topics.create(&topic, Execution::Do);
        self.acknowledged(created).unwrap();
        self.topic(name)
    }

    fn topic(&self, name: &str) -> Arc<Topic> {
        self.topics.find(TopicRef::Name(name)).unwrap()
    }

    /// Appends without waiting for the disk.
    fn append(&self, topic: &Topic, bytes: &[u8]) -> Result<Placed, ProduceError> {
        self.topics.producing().append(topic, 0, bytes, None)
    }

    /// Appends and waits for the acknowledgement.
    fn produce(&mut self, topic: &Topic, values: &[&str]) -> u64 {
        let placed = self.append(topic, &self.batch(values)).unwrap();
        self.settle(placed)
    }

    fn settle(&mut self, placed: Placed) -> u64 {
        for _ in 0..20 {
            if let Poll::Ready(durable) = placed.durable.poll_durable(Waker::noop()) {
                durable.unwrap();
                return placed.offset;
            }
            self.sync();
        }
        panic!("it does not become durable");
    }

    /// Encodes a batch with the current time.
    fn batch(&self, values: &[&str]) -> Vec<u8> {
        batch_of(
            values,
            self.clock.unix_ms() as i64,
            None,
            &Template::default(),
        )
    }

    fn fetch(&self, topic: &Arc<Topic>, offset: u64) -> Result<Fetched, FetchError> {
        self.fetch_as(topic, offset, Isolation::Uncommitted)
    }

    fn fetch_as(
        &self,
        topic: &Arc<Topic>,
        offset: u64,
        isolation: Isolation,
    ) -> Result<Fetched, FetchError> {
        let mut fetching = self.fetching(topic, offset, isolation, 0);
        match fetching.poll_fetched(Waker::noop()) {
            Poll::Ready(mut fetched) => fetched.remove(0),
            Poll::Pending => panic!("it waits"),
        }
    }

    fn fetching(
        &self,
        topic: &Arc<Topic>,
        offset: u64,
        isolation: Isolation,
        bytes_min: usize,
    ) -> Fetching {
        let ask = Ask {
            topic: topic.clone(),
            partition: 0,
            offset,
            bytes_max: 1 << 20,
            leader_epoch: None,
        };
        let limits = FetchLimits {
            isolation,
            bytes_min,
            bytes_max: 1 << 20,
            placement: BatchPlacement::AsStored,
        };
        self.topics.fetch(vec![ask], limits)
    }

    /// Reads offsets and values from an offset on, without markers.
    fn read(&self, topic: &Arc<Topic>, offset: u64) -> Vec<(i64, String)> {
        values(&self.fetch(topic, offset).unwrap())
    }
}

/// Encodes a batch in which each value is its own key.
fn batch_of(
    values: &[&str],
    time_ms: i64,
    producer: Option<BatchProducer>,
    template: &Template,
) -> Vec<u8> {
    let mut builder = Builder::new();
    for value in values {
        let key = value.split('=').next().map(str::as_bytes);
        builder.push(time_ms, key, Some(value.as_bytes()), &[]);
    }
    let mut bytes = Vec::new();
    let template = Template {
        producer,
        ..*template
    };
    builder.finish(&template, &mut bytes);
    bytes
}

/// Returns the bytes of the batches.
fn batches(fetched: &Fetched) -> Vec<bytes::Bytes> {
    let batches = fetched.batches.iter().cloned();
    batches.map(|it| it.into_bytes().unwrap()).collect()
}

fn values(fetched: &Fetched) -> Vec<(i64, String)> {
    let mut values = Vec::new();
    for bytes in batches(fetched) {
        let (batch, rest) = Batch::split(&bytes).unwrap();
        assert!(rest.is_empty() && batch.is_intact());
        if batch.header().attributes.is_control() {
            continue;
        }
        for record in batch.records().unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8_lossy(record.value.unwrap_or_default());
            values.push((record.offset, value.into_owned()));
        }
    }
    values
}

fn pairs(from: i64, values: &[&str]) -> Vec<(i64, String)> {
    let values = values.iter().map(|it| (*it).to_owned());
    (from..).zip(values).collect()
}

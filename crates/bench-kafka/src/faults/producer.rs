//! Idempotent producer that repeats a message until it is acknowledged.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use kafka::{ErrorCode, init_producer_id, produce};
use recordbatch::{Builder, Template};

use super::shared::Shared;
use crate::message::{Id, KeyPattern, MessageGenerator, PayloadPattern};
use crate::session::{Session, error_name};
use crate::topic;
use bench::workload::role::Failure;
use meter::clock::{now_ns, unix_ms};

/// Maximum time without an answer before the connection is given up. The default of Kafka's clients
/// is 30 s, which would measure the client's patience when a node is paused.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Time limit of a request at the broker.
const TIMEOUT_MS: i32 = 30_000;

/// Pause before a repetition: `retry.backoff.ms` of Kafka's clients.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Time limit for the ack of a message with all repetitions: `delivery.timeout.ms` of Kafka's
/// clients.
const DELIVERY_MAX_NS: u64 = 120_000_000_000;

/// Failure of a message that was not acknowledged in time.
const UNANSWERED: &str = "unanswered";

/// Reason of a repetition after a lost or silent connection.
const DISCONNECTED: &str = "connection-lost";

/// Result of a producer.
#[derive(Debug, Default)]
pub(super) struct Produced {
    /// Numbers and offsets of the acknowledged messages.
    pub(super) acked: Vec<(u64, i64)>,
    /// Number of messages that were sent, acknowledged or not.
    pub(super) numbers: u64,
    /// Reason for which the producer gave up.
    pub(super) failure: Option<String>,
}

/// A producer of one partition.
pub(super) struct Producer<'a> {
    shared: &'a Shared,
    lane: u32,
    partition: i32,
    maker: MessageGenerator,
    builder: Builder,
    identity: Option<recordbatch::Producer>,
    session: Option<Session>,
    /// Index of the address to ask next.
    address: usize,
}

/// Outcome of an attempt.
enum Attempt<T> {
    Done(T),
    /// Reason for which it is repeated.
    Repeat(String),
    /// Reason for which it can never succeed.
    Failed(String),
}

impl<'a> Producer<'a> {
    pub(super) fn new(shared: &'a Shared, lane: u32, partition: i32) -> Self {
        let (keys, payloads) = (KeyPattern::Random, PayloadPattern::Random);
        Self {
            shared,
            lane,
            partition,
            maker: MessageGenerator::new(shared.tag, shared.size, keys, payloads),
            builder: Builder::new(),
            identity: None,
            session: None,
            address: lane as usize,
        }
    }

    /// Produces until the run is over.
    pub(super) fn run(mut self) -> Produced {
        let mut produced = Produced::default();
        while !self.shared.is_over() {
            let number = produced.numbers;
            produced.numbers += 1;
            match self.deliver(number) {
                Ok(offset) => produced.acked.push((number, offset)),
                Err(failure) => {
                    produced.failure = Some(failure);
                    break;
                }
            }
        }
        produced
    }

    /// Repeats a message until it is acknowledged, and returns its offset.
    fn deliver(&mut self, number: u64) -> Result<i64, String> {
        let limit_ns = now_ns() + DELIVERY_MAX_NS;
        let mut batch: Option<Bytes> = None;
        while now_ns() < limit_ns {
            let sent_ns = now_ns();
            let attempt = match (self.identity, batch.clone()) {
                (None, _) => self.identify(),
                (Some(identity), None) => {
                    batch = Some(self.batch(identity, number));
                    continue;
                }
                (Some(_), Some(batch)) => self.produce(batch),
            };
            match attempt {
                Attempt::Done(None) => {}
                Attempt::Done(Some(offset)) => {
                    self.shared.acknowledged(sent_ns);
                    return Ok(offset);
                }
                Attempt::Failed(reason) => return Err(reason),
                Attempt::Repeat(reason) => {
                    self.shared.retried(&reason);
                    self.session = None;
                    thread::sleep(RETRY_PAUSE);
                }
            }
        }
        Err(UNANSWERED.to_owned())
    }

    fn batch(&mut self, identity: recordbatch::Producer, number: u64) -> Bytes {
        self.maker.key();
        let id = Id {
            lane: self.lane,
            number,
        };
        let (key, value) = self.maker.message(id);
        self.builder.push(unix_ms(), Some(key), Some(value), &[]);
        let sequence = (number % (1 << 31)) as i32;
        let template = Template {
            producer: Some(recordbatch::Producer {
                sequence,
                ..identity
            }),
            ..Template::default()
        };
        let mut bytes = Vec::with_capacity(self.builder.size());
        self.builder.finish(&template, &mut bytes);
        bytes.into()
    }

    /// Gets a producer id.
    fn identify(&mut self) -> Attempt<Option<i64>> {
        let request = init_producer_id::Request {
            transaction_timeout_ms: TIMEOUT_MS,
            ..init_producer_id::Request::default()
        };
        let answer = self.session().and_then(|session| session.ask(&request));
        let Ok(answer) = answer else {
            return Attempt::Repeat(DISCONNECTED.to_owned());
        };
        match outcome(answer.error_code) {
            Attempt::Done(()) => {
                self.identity = Some(recordbatch::Producer {
                    id: answer.producer_id,
                    epoch: answer.producer_epoch,
                    sequence: 0,
                });
                Attempt::Done(None)
            }
            Attempt::Repeat(reason) => Attempt::Repeat(reason),
            Attempt::Failed(reason) => Attempt::Failed(reason),
        }
    }

    /// Sends a batch to the leader and returns its offset.
    fn produce(&mut self, batch: Bytes) -> Attempt<Option<i64>> {
        let request = produce::Request {
            acks: -1,
            timeout_ms: TIMEOUT_MS,
            topic_data: vec![produce::Topic {
                name: self.shared.topic.to_owned(),
                partition_data: vec![produce::Partition {
                    index: self.partition,
                    records: Some(batch.into()),
                }],
                ..produce::Topic::default()
            }],
            ..produce::Request::default()
        };
        let answer = self.session().and_then(|session| session.ask(&request));
        let Ok(answer) = answer else {
            return Attempt::Repeat(DISCONNECTED.to_owned());
        };
        let mut answers = answer.responses.iter();
        let answer = answers.find_map(|topic| topic.partition_responses.first());
        let Some(answer) = answer else {
            return Attempt::Failed("unanswered-partition".to_owned());
        };
        match outcome(answer.error_code) {
            Attempt::Done(()) if answer.base_offset < 0 => {
                Attempt::Failed("negative-offset".to_owned())
            }
            Attempt::Done(()) => Attempt::Done(Some(answer.base_offset)),
            Attempt::Repeat(reason) => Attempt::Repeat(reason),
            Attempt::Failed(reason) => Attempt::Failed(reason),
        }
    }

    /// Returns a connection to the partition's leader, which any node is asked for.
    fn session(&mut self) -> Result<&mut Session, Failure> {
        if self.session.is_none() {
            let address = &self.shared.addresses[self.address % self.shared.addresses.len()];
            self.address += 1;
            let mut session = Session::open_within(address, ANSWER_MAX)?;
            let partition = usize::try_from(self.partition)?;
            let leader = topic::leader(&mut session, self.shared.topic, partition)?;
            if leader != *address {
                session = Session::open_within(&leader, ANSWER_MAX)?;
            }
            self.session = Some(session);
        }
        self.session.as_mut().ok_or_else(|| "no connection".into())
    }
}

fn outcome(code: ErrorCode) -> Attempt<()> {
    match code {
        ErrorCode::None => Attempt::Done(()),
        code if code.is_retriable() => Attempt::Repeat(error_name(code)),
        code => Attempt::Failed(error_name(code)),
    }
}

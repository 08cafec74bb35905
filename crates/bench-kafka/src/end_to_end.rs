//! End-to-end role: sends one message at a time to a waiting consumer.
//!
//! The latency runs from the write to the producer's socket to the receipt at the consumer, whose
//! fetch is already in flight. The next message leaves after this one was received and
//! acknowledged.

use recordbatch::{Batches, Builder, Template};

use super::acknowledged::AckedMessages;
use super::fetch::{Fetcher, Position};
use super::message::{Id, KeyPattern, MessageGenerator, PayloadPattern, id_of};
use super::session::{Session, error_name};
use super::topic::{self, Layout, OffsetKind};
use super::{Acks, LoadSpec, ProduceCounts, verify};
use bench::measurement::Verification;
use bench::tally::Tally;
use bench::workload::role::{Failure, Ready, read_line, write_line};
use meter::clock::{now_ns, unix_ms};

/// Maximum wait of the consumer's fetch.
const WAIT_MS: i32 = 10_000;

/// Maximum time for a message to arrive.
const LOST_NS: u64 = 60_000_000_000;

/// Plays the role: warms up, sends, and reads back.
///
/// # Errors
/// When the broker cannot be reached, or a message did not arrive within 60 s.
pub(super) fn play(spec: &LoadSpec, size: usize, acks: Acks) -> Result<(), Failure> {
    let opened_ns = now_ns();
    let mut session = Session::open(&spec.address)?;
    let layout = topic::layout(&mut session, &spec.topic)?;
    let begin = topic::offsets(&layout, &spec.topic, OffsetKind::Next)?;
    let mut pair = Pair::open(spec, size, acks, &layout, begin[0])?;
    pair.send_for(spec.warmup_ns)?;
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - opened_ns,
    })?;
    if read_line()?.is_some() {
        write_line(&pair.send_for(spec.window_ns)?)?;
    }
    if read_line()?.is_some() {
        write_line(&pair.verify(&layout, begin)?)?;
    }
    read_line()?;
    Ok(())
}

/// A producer and a consumer of the first partition.
struct Pair<'a> {
    spec: &'a LoadSpec,
    size: usize,
    producer: Session,
    consumer: Fetcher,
    request: kafka::produce::Request,
    maker: MessageGenerator,
    builder: Builder,
    next_number: u64,
    acked: AckedMessages,
}

impl<'a> Pair<'a> {
    fn open(
        spec: &'a LoadSpec,
        size: usize,
        acks: Acks,
        layout: &Layout,
        offset: i64,
    ) -> Result<Self, Failure> {
        let leader = &layout.leaders[layout.led_by[0]];
        let position = Position {
            partition: 0,
            offset,
        };
        let mut consumer = Fetcher::open(leader, &spec.topic, vec![position])?;
        consumer.ask(WAIT_MS)?;
        let topic = kafka::produce::Topic {
            name: spec.topic.clone(),
            ..kafka::produce::Topic::default()
        };
        Ok(Self {
            spec,
            size,
            producer: Session::open(leader)?,
            consumer,
            request: kafka::produce::Request {
                acks: acks.number(),
                timeout_ms: 30_000,
                topic_data: vec![topic],
                ..kafka::produce::Request::default()
            },
            maker: MessageGenerator::new(
                spec.tag,
                size,
                KeyPattern::Random,
                PayloadPattern::Random,
            ),
            builder: Builder::new(),
            next_number: 0,
            acked: AckedMessages::default(),
        })
    }

    fn send_for(&mut self, window_ns: u64) -> Result<ProduceCounts, Failure> {
        let begin_ns = now_ns();
        let mut tally = Tally::new();
        let mut requests = 0;
        while now_ns() - begin_ns < window_ns {
            self.send(&mut tally)?;
            requests += 1;
        }
        Ok(ProduceCounts {
            tally,
            window_ns: (now_ns() - begin_ns).max(1),
            requests,
        })
    }

    /// Sends one message, and waits until it has arrived and is acknowledged.
    fn send(&mut self, tally: &mut Tally) -> Result<(), Failure> {
        let id = Id {
            lane: 0,
            number: self.next_number,
        };
        self.next_number += 1;
        self.pack(id);
        let sent_ns = now_ns();
        tally.sent();
        let version = self.producer.send(&self.request)?;
        let arrived_ns = self.wait_for(id, sent_ns)?;
        let answer = self.producer.receive::<kafka::produce::Request>(version)?;
        let mut parts = answer
            .responses
            .iter()
            .flat_map(|one| &one.partition_responses);
        match parts.next() {
            Some(one) if one.error_code.is_error() => tally.failed(&error_name(one.error_code)),
            Some(one) if one.base_offset < 0 => tally.failed("negative-offset"),
            Some(one) => {
                self.acked.note(0, id.number, 1, one.base_offset);
                tally.answered(sent_ns, arrived_ns);
            }
            None => tally.failed("unanswered"),
        }
        Ok(())
    }

    /// Makes the request: a batch of this message only.
    fn pack(&mut self, id: Id) {
        self.maker.key();
        let (key, value) = self.maker.message(id);
        self.builder.push(unix_ms(), Some(key), Some(value), &[]);
        let mut bytes = Vec::with_capacity(self.builder.size());
        self.builder.finish(&Template::default(), &mut bytes);
        self.request.topic_data[0].partition_data = vec![kafka::produce::Partition {
            index: 0,
            records: Some(bytes::Bytes::from(bytes).into()),
        }];
    }

    /// Returns the message's arrival time, with the next fetch in flight.
    fn wait_for(&mut self, id: Id, sent_ns: u64) -> Result<u64, Failure> {
        loop {
            let fetched = self.consumer.take()?;
            let arrived_ns = now_ns();
            self.consumer.ask(WAIT_MS)?;
            if fetched.iter().any(|one| self.holds(one, id)) {
                return Ok(arrived_ns);
            }
            if arrived_ns - sent_ns > LOST_NS {
                return Err("a message did not arrive within 60 s".into());
            }
        }
    }

    fn holds(&self, records: &[u8], id: Id) -> bool {
        let batches = Batches::new(records).map_while(Result::ok);
        let all = batches.filter_map(|batch| batch.records()).flatten();
        let mut values = all.map_while(Result::ok).filter_map(|record| record.value);
        values.any(|value| id_of(self.spec.tag, value) == Some(id))
    }

    fn verify(&self, layout: &Layout, begin: Vec<i64>) -> Result<Verification, Failure> {
        let run = verify::ReadBackRun {
            topic: &self.spec.topic,
            layout,
            tag: self.spec.tag,
            size: self.size,
        };
        let numbers = |lane| (lane == 0).then_some(self.next_number);
        verify::read_back(&run, begin, &self.acked, numbers)
    }
}

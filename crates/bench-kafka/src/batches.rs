//! Batching of a producer's messages, and of batches into requests.
//!
//! The rules are those of librdkafka and the Java client. A message is added to the open batch of
//! its partition. A batch leaves when it is full or its linger time is over, at most one for each
//! partition in a request, as long as the limit of requests in flight allows. A *lane* is the
//! sequence of messages from one producer to one partition. Its messages are numbered from 0, so a
//! batch is a range of numbers.
//!
//! The module uses no socket and no clock.

use std::collections::VecDeque;

use bytes::Bytes;
use kafka::produce;
use recordbatch::{Builder, Compression, Template};

use super::message::{Id, MessageGenerator};

/// Batching rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchRules {
    pub(super) linger_ns: u64,
    /// Maximum bytes of a batch; a larger message becomes a batch alone.
    pub(super) batch_size: usize,
    pub(super) compression: Compression,
}

/// Messages of one producer to one partition.
#[derive(Debug)]
pub(super) struct Lane {
    /// Index among all lanes.
    id: u32,
    partition: i32,
    next_number: u64,
    /// Waiting batches; the last of them is open.
    waiting: VecDeque<Batch>,
}

/// Messages that are sent together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    builder: Builder,
    pub(super) lane: u32,
    /// Number of the first message.
    pub(super) first: u64,
    opened_ns: u64,
    /// Slot that waits for each message.
    pub(super) slots: Vec<u32>,
}

/// Record overhead on top of key and payload: length, offset, timestamp and counts.
const RECORD_OVERHEAD: usize = 24;

impl Lane {
    pub(super) fn new(id: u32, partition: i32) -> Self {
        Self {
            id,
            partition,
            next_number: 0,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn partition(&self) -> i32 {
        self.partition
    }

    pub(super) fn is(&self, id: u32) -> bool {
        self.id == id
    }

    /// Returns how many numbers the lane has assigned.
    pub(super) fn numbers(&self) -> u64 {
        self.next_number
    }

    /// Adds a message of `size` bytes (key and payload), whose key was just made.
    pub(super) fn push(
        &mut self,
        maker: &mut MessageGenerator,
        slot: u32,
        size: usize,
        now: Clocks,
        rules: &BatchRules,
        spare: &mut Vec<Batch>,
    ) {
        let has_room = |batch: &Batch| {
            batch.slots.is_empty()
                || batch.builder.size() + size + RECORD_OVERHEAD <= rules.batch_size
        };
        if !self.waiting.back().is_some_and(has_room) {
            let mut batch = spare.pop().unwrap_or_default();
            batch.lane = self.id;
            batch.first = self.next_number;
            batch.opened_ns = now.monotonic_ns;
            self.waiting.push_back(batch);
        }
        let id = Id {
            lane: self.id,
            number: self.next_number,
        };
        if let Some(batch) = self.waiting.back_mut() {
            let (key, value) = maker.message(id);
            batch.builder.push(now.unix_ms, Some(key), Some(value), &[]);
            batch.slots.push(slot);
            self.next_number += 1;
        }
    }

    /// Returns when the first waiting batch was opened; `None` without one.
    fn opened_ns(&self) -> Option<u64> {
        self.waiting.front().map(|batch| batch.opened_ns)
    }

    /// Returns true if the first batch must leave.
    fn is_ready(&self, now_ns: u64, rules: &BatchRules) -> bool {
        let is_full = self.waiting.len() > 1;
        is_full
            || self
                .opened_ns()
                .is_some_and(|opened_ns| opened_ns + rules.linger_ns <= now_ns)
    }

    /// Returns when the linger time of the first batch ends.
    pub(super) fn due_ns(&self, rules: &BatchRules) -> Option<u64> {
        Some(self.opened_ns()? + rules.linger_ns)
    }
}

/// Current time by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clocks {
    pub(super) monotonic_ns: u64,
    pub(super) unix_ms: i64,
}

/// Moves the batches that must leave now, at most one of each lane, into `request`. Returns the
/// batches in the order of the request, emptied except for their slots.
pub(super) fn take<'a>(
    lanes: impl Iterator<Item = &'a mut Lane>,
    now_ns: u64,
    rules: &BatchRules,
    request: &mut produce::Request,
) -> Vec<Batch> {
    let mut taken = Vec::new();
    for lane in lanes {
        if !lane.is_ready(now_ns, rules) {
            continue;
        }
        let Some(mut batch) = lane.waiting.pop_front() else {
            continue;
        };
        let mut bytes = Vec::with_capacity(batch.builder.size());
        let template = Template::default();
        match rules.compression {
            Compression::None => batch.builder.finish(&template, &mut bytes),
            packed => batch
                .builder
                .finish_compressed(&template, packed, &mut bytes),
        }
        let partition = produce::Partition {
            index: lane.partition,
            records: Some(Bytes::from(bytes).into()),
        };
        if let Some(topic) = request.topic_data.first_mut() {
            topic.partition_data.push(partition);
        }
        taken.push(batch);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{KeyPattern, PayloadPattern, id_of};

    const SIZE: usize = 100;

    fn rules(linger_ns: u64, batch_size: usize) -> BatchRules {
        BatchRules {
            linger_ns,
            batch_size,
            compression: Compression::None,
        }
    }

    fn request() -> produce::Request {
        produce::Request {
            topic_data: vec![produce::Topic::default()],
            ..produce::Request::default()
        }
    }

    fn push(lane: &mut Lane, slots: std::ops::Range<u32>, at_ns: u64, rules: &BatchRules) {
        let mut maker = MessageGenerator::new(1, SIZE, KeyPattern::Fixed, PayloadPattern::Zeros);
        let now = Clocks {
            monotonic_ns: at_ns,
            unix_ms: 5,
        };
        for slot in slots {
            let size = maker.key().len() + SIZE;
            lane.push(&mut maker, slot, size, now, rules, &mut Vec::new());
        }
    }

    #[test]
    fn without_linger_waiting_messages_leave_at_once_in_full_batches() {
        let (mut lane, rules) = (Lane::new(7, 3), rules(0, 1_000));
        push(&mut lane, 0..10, 50, &rules);
        let (mut first, mut second) = (request(), request());
        let one = take(std::iter::once(&mut lane), 50, &rules, &mut first);
        let two = take(std::iter::once(&mut lane), 50, &rules, &mut second);
        assert!(take(std::iter::once(&mut lane), 50, &rules, &mut request()).is_empty());
        let [(one, first), (two, second)] = [(&one[0], first), (&two[0], second)];
        assert_eq!((one.first, one.lane), (0, 7));
        assert_eq!(two.first, one.slots.len() as u64);
        assert_eq!(
            [one.slots.clone(), two.slots.clone()].concat(),
            (0..10).collect::<Vec<_>>()
        );
        let mut numbers = 0;
        for request in [first, second] {
            let partition = &request.topic_data[0].partition_data[0];
            assert_eq!(partition.index, 3);
            let bytes = partition.records.clone().unwrap().into_bytes();
            assert!(bytes.len() <= 1_000);
            let (batch, rest) = recordbatch::Batch::split(&bytes).unwrap();
            assert!(batch.is_intact() && rest.is_empty());
            for record in batch.records().unwrap() {
                let id = id_of(1, record.unwrap().value.unwrap()).unwrap();
                assert_eq!((id.lane, id.number), (7, numbers));
                numbers += 1;
            }
        }
        assert_eq!((numbers, lane.numbers()), (10, 10));
    }

    #[test]
    fn batch_lingers_until_full_or_its_linger_time_ends() {
        let (mut lane, rules) = (Lane::new(0, 0), rules(1_000, 1_000));
        push(&mut lane, 0..1, 50, &rules);
        push(&mut lane, 1..2, 500, &rules);
        assert!(take(std::iter::once(&mut lane), 1_049, &rules, &mut request()).is_empty());
        assert_eq!(lane.due_ns(&rules), Some(1_050));
        let lingered = take(std::iter::once(&mut lane), 1_050, &rules, &mut request());
        assert_eq!(lingered[0].slots, [0, 1]);
        push(&mut lane, 0..20, 2_000, &rules);
        assert!(!take(std::iter::once(&mut lane), 2_000, &rules, &mut request()).is_empty());
    }
}

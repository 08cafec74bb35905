//! A node that is killed whenever it begins a segment, while producers write: every acknowledged
//! record is stored once at its offset, and batches are complete.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use kafka::{Records, fetch, produce};
use recordbatch::{Batch, Builder, Template};
use rustix::process::Signal;

use super::client::{Client, good, until};
use crate::support::{Node, Place};

pub(super) const TOPIC: &str = "written";
const KILLS: usize = 8;
const PRODUCERS: u64 = 4;

/// Number of records in a batch.
const BATCH: u64 = 3;

/// Size of a record; a segment of 1 MiB is full after about sixty batches.
const VALUE_SIZE: usize = 6_000;

/// The state of a producer.
#[derive(Debug, Default)]
pub(super) struct ProducerState {
    /// The next number; every number is used once.
    pub(super) next: u64,
    /// The numbers that must be stored, by offset.
    pub(super) kept: BTreeMap<i64, u64>,
}

impl ProducerState {
    /// Writes until the node is gone.
    fn write(&mut self, partition: i32, client: &mut Client) {
        while self.write_next(partition, client) {}
    }

    /// Writes one batch. Returns false if the connection is gone or the batch was refused.
    pub(super) fn write_next(&mut self, partition: i32, client: &mut Client) -> bool {
        let Ok(offset) = self.write_one(partition, client) else {
            return false;
        };
        let numbers = self.next - BATCH..self.next;
        self.kept.extend((offset..).zip(numbers));
        true
    }

    fn write_one(&mut self, partition: i32, client: &mut Client) -> std::io::Result<i64> {
        let mut builder = Builder::new();
        for number in self.next..self.next + BATCH {
            let value = format!("{number} {}", "x".repeat(VALUE_SIZE));
            builder.push(now_ms(), None, Some(value.as_bytes()), &[]);
        }
        self.next += BATCH;
        let mut bytes = Vec::new();
        builder.finish(&Template::default(), &mut bytes);
        let request = produce::Request {
            acks: -1,
            timeout_ms: 20_000,
            topic_data: vec![produce::Topic {
                name: TOPIC.to_owned(),
                partition_data: vec![produce::Partition {
                    index: partition,
                    records: Some(bytes::Bytes::from(bytes).into()),
                }],
                ..produce::Topic::default()
            }],
            ..produce::Request::default()
        };
        let response = client.ask(9, &request)?;
        let told = &response.responses[0].partition_responses[0];
        good(told.error_code)?;
        Ok(told.base_offset)
    }

    /// Checks that the stored records have no gaps, that batches are complete, and that
    /// acknowledged records are at their offsets. From now on all stored records must stay.
    pub(super) fn check_stored(&mut self, there: &[u64]) {
        for (offset, number) in &self.kept {
            let found = usize::try_from(*offset).ok().and_then(|at| there.get(at));
            assert_eq!(found, Some(number), "offset {offset}");
        }
        let mut last = None;
        for batch in there.chunks(BATCH as usize) {
            let first = batch[0];
            assert_eq!(first % BATCH, 0, "a batch begins in its middle");
            assert!(
                (first..first + BATCH).eq(batch.iter().copied()),
                "{batch:?}"
            );
            assert!(
                last < Some(first) && first < self.next,
                "{first} behind {last:?}"
            );
            last = Some(first);
        }
        self.kept = (0..).zip(there.iter().copied()).collect();
    }
}

/// Returns the current time: older timestamps would be subject to retention.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis() as i64
}

/// Reads the numbers in a partition, in order.
fn read(node: &Node, index: i32) -> Vec<u64> {
    read_through(&mut Client::connect(node).unwrap(), index)
}

/// Reads the numbers in a partition through a connection.
pub(super) fn read_through(client: &mut Client, index: i32) -> Vec<u64> {
    let mut all = Vec::new();
    loop {
        let request = fetch::Request {
            max_bytes: 8 << 20,
            topics: vec![fetch::Topic {
                topic: TOPIC.to_owned(),
                partitions: vec![fetch::Partition {
                    partition: index,
                    fetch_offset: all.len() as i64,
                    partition_max_bytes: 4 << 20,
                    ..fetch::Partition::default()
                }],
                ..fetch::Topic::default()
            }],
            ..fetch::Request::default()
        };
        let mut response = client.ask(12, &request).unwrap();
        let partition = response.responses.remove(0).partitions.remove(0);
        good(partition.error_code).unwrap();
        let bytes = partition
            .records
            .map(Records::into_bytes)
            .unwrap_or_default();
        if bytes.is_empty() {
            assert_eq!(partition.high_watermark, all.len() as i64);
            return all;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (batch, behind) = Batch::split(rest).unwrap();
            for record in batch.records().unwrap() {
                let record = record.unwrap();
                assert_eq!(record.offset, all.len() as i64, "offsets are dense");
                let text = str::from_utf8(record.value.unwrap()).unwrap();
                let number = text.split(' ').next().unwrap();
                all.push(number.parse().unwrap());
            }
            rest = behind;
        }
    }
}

/// Returns the newest segment.
fn newest_segment(line: &Path) -> String {
    let names = std::fs::read_dir(line).unwrap().map(|entry| {
        let name = entry.unwrap().file_name();
        name.into_string().unwrap()
    });
    let is_segment = |name: &String| name.starts_with(|first: char| first.is_ascii_digit());
    names.filter(is_segment).max().unwrap()
}

#[test]
fn acked_records_survive_kill9_at_segment_rolls() {
    let place = Place::new();
    let line = place.path("data/journal/line");
    let mut all: Vec<ProducerState> = (0..PRODUCERS).map(|_| ProducerState::default()).collect();
    let flags = format!("--data data --topics-partitions {PRODUCERS}");
    let mut node = place.serve(&flags);
    super::kcat(&place, &node, &format!("-L -t {TOPIC}"), "").expect(0);
    for kill in 0..KILLS {
        thread::scope(|scope| {
            for (index, written) in (0..).zip(&mut all) {
                let mut client = Client::connect(&node).unwrap();
                scope.spawn(move || written.write(index, &mut client));
            }
            let before = newest_segment(&line);
            // Every second kill is a few segments later, while others are being filed.
            for _ in 0..=kill % 2 * 4 {
                let last = newest_segment(&line);
                until(|| newest_segment(&line) > last);
            }
            node.signal(Signal::KILL);
            assert!(newest_segment(&line) > before);
        });
        node.end();
        node = place.serve(&flags);
        for (index, written) in (0..).zip(&mut all) {
            written.check_stored(&read(&node, index));
        }
    }
    let kept: usize = all.iter().map(|written| written.kept.len()).sum();
    assert!(kept > KILLS * 100, "{kept}");
    node.stop().expect(0);
    let inspected = place.run("inspect data --json").expect(0).json();
    assert_eq!(inspected["whole"], true, "{inspected:#}");
}

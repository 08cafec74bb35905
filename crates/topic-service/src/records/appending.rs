//! Appends of records: the records of one partition are put into batches, which share a sync.
//!
//! All records are validated before any is appended. Each batch is then appended independently, and
//! the result of every record is reported.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use recordbatch::{Builder, Template};

use crate::error::ProduceError;
use crate::produce::Placed;
use crate::service::Topics;
use crate::topic::Topic;
use topics::partition_of;

/// A record to append.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// The key. Records with the same key go to the same partition, in order.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone, which deletes the key in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// The partition; `None` to select it by the key.
    pub partition: Option<u32>,
}

/// The first invalid record; no record is appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {index}: {reason}")]
pub struct BadRecords {
    /// The index of the record, from 0.
    pub index: usize,
    /// The mistake.
    pub reason: Bad,
}

/// A mistake in a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// The topic has no such partition.
    #[error("no partition {partition}: the topic has {partitions} partitions")]
    Partition {
        /// The requested partition.
        partition: u32,
        /// The number of partitions.
        partitions: u32,
    },
    /// The record has no key, but the topic is compacted.
    #[error("a record of a compacted topic needs a key")]
    NoKey,
    /// The record exceeds the topic's maximum batch size.
    #[error("a batch with this record has {size} bytes (limit {size_max}, max.message.bytes)")]
    Large {
        /// The size of a batch with only this record, in bytes.
        size: usize,
        /// The topic's maximum batch size in bytes.
        size_max: usize,
    },
}

/// The result for a record. The topic's durability determines when it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordResult {
    /// The partition.
    pub partition: u32,
    /// The offset in the partition.
    pub offset: Result<u64, ProduceError>,
}

/// A pending append of records: a future, or polled.
///
/// A [`platform::Pending`] waits for two tickets at most and has one outcome, while the batches of an
/// append are in several shards and each succeeds or fails by itself. As steps of a `Pending`, each
/// append would allocate once more.
#[must_use = "poll it before reporting any result"]
#[derive(Debug)]
pub struct Appending {
    batches: Vec<AppendedBatch>,
    /// For each record, its batch and its position in the batch.
    places: Vec<(usize, u64)>,
}

/// A batch and its result.
#[derive(Debug)]
struct AppendedBatch {
    partition: u32,
    placed: Result<Placed, ProduceError>,
    is_known: bool,
}

/// Maximum size of a record's fields apart from key, value and headers: its length, attributes,
/// time, offset, the lengths of key and value, and the number of headers, as varints.
const RECORD_AROUND: usize = 5 + 1 + 10 + 5 + 5 + 5 + 5;

/// Maximum size of the two lengths of a header.
const HEADER_AROUND: usize = 5 + 5;

impl Topics {
    /// Appends records to a topic.
    pub fn append_records(
        &self,
        topic: &Topic,
        records: &[NewRecord<'_>],
    ) -> Result<Appending, BadRecords> {
        let mut making = BatchBuilders::new(self, topic);
        for (index, record) in records.iter().enumerate() {
            let bad = |reason| BadRecords { index, reason };
            making.take(record).map_err(bad)?;
        }
        Ok(making.append(self, topic))
    }
}

/// The batches being built.
struct BatchBuilders {
    partitions: u32,
    size_max: usize,
    is_compacted: bool,
    now_ms: i64,
    /// The partition of all records without a key.
    keyless: u32,
    /// The complete batches with their partitions.
    full: Vec<(u32, Vec<u8>)>,
    /// The open batches by partition, with the indices of their records.
    open: BTreeMap<u32, (Builder, Vec<usize>)>,
    places: Vec<(usize, u64)>,
}

impl BatchBuilders {
    fn new(topics: &Topics, topic: &Topic) -> Self {
        let ports = &topics.state.platform.ports;
        let about = topic.about();
        Self {
            partitions: about.partitions,
            size_max: about.config.batch_size_max(),
            is_compacted: about.config.cleanup().compacts,
            now_ms: i64::try_from(ports.clock.unix_ms()).unwrap_or(i64::MAX),
            keyless: (ports.entropy.next_u64() >> 32) as u32 % about.partitions.max(1),
            full: Vec::new(),
            open: BTreeMap::new(),
            places: Vec::new(),
        }
    }

    fn take(&mut self, record: &NewRecord<'_>) -> Result<(), Bad> {
        let partitions = self.partitions;
        let partition = match (record.partition, record.key) {
            (Some(partition), _) if partition >= partitions => {
                return Err(Bad::Partition {
                    partition,
                    partitions,
                });
            }
            (Some(partition), _) => partition,
            (None, Some(key)) => partition_of(key, partitions),
            (None, None) => self.keyless,
        };
        if self.is_compacted && record.key.is_none() {
            return Err(Bad::NoKey);
        }
        let (size, size_max) = (size_of(record), self.size_max);
        let (builder, within) = self.open.entry(partition).or_default();
        if builder.count() > 0 && builder.size().saturating_add(size) > size_max {
            let indexes = std::mem::take(within);
            let bytes = finish(builder);
            self.fill(partition, bytes, &indexes);
        }
        let (builder, within) = self.open.entry(partition).or_default();
        builder.push(self.now_ms, record.key, record.value, record.headers);
        within.push(self.places.len());
        self.places.push((0, 0));
        match builder.size() {
            size if size > size_max => Err(Bad::Large { size, size_max }),
            _ => Ok(()),
        }
    }

    fn fill(&mut self, partition: u32, bytes: Vec<u8>, indexes: &[usize]) {
        for (place, index) in (0..).zip(indexes) {
            self.places[*index] = (self.full.len(), place);
        }
        self.full.push((partition, bytes));
    }

    fn append(mut self, topics: &Topics, topic: &Topic) -> Appending {
        for (partition, (mut builder, indexes)) in std::mem::take(&mut self.open) {
            let bytes = finish(&mut builder);
            self.fill(partition, bytes, &indexes);
        }
        // One round, so that one sync covers all batches; it ends with this function.
        let mut producing = topics.producing();
        let batches = self.full.iter().map(|(partition, bytes)| AppendedBatch {
            partition: *partition,
            placed: producing.append(topic, *partition, bytes, None),
            is_known: false,
        });
        Appending {
            batches: batches.collect(),
            places: self.places,
        }
    }
}

fn finish(builder: &mut Builder) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(builder.size());
    builder.finish(&Template::default(), &mut bytes);
    bytes
}

fn size_of(record: &NewRecord<'_>) -> usize {
    let of = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let headers = record.headers.iter();
    let headers = headers.map(|(key, value)| key.len() + of(*value) + HEADER_AROUND);
    RECORD_AROUND + of(record.key) + of(record.value) + headers.sum::<usize>()
}

impl Appending {
    /// Returns the result of each record, in order, once all are known; until then, the waker is
    /// woken when they may be.
    pub fn poll_results(&mut self, waker: &Waker) -> Poll<Vec<RecordResult>> {
        for made in self.batches.iter_mut().filter(|it| !it.is_known) {
            if let Ok(placed) = &made.placed
                && let Err(unconfirmed) = ready!(placed.durable.poll_durable(waker))
            {
                made.placed = Err(unconfirmed.into());
            }
            made.is_known = true;
        }
        let results = self.places.iter().map(|(batch, place)| {
            let made = &self.batches[*batch];
            let offset = made.placed.as_ref().map(|it| it.offset + place);
            RecordResult {
                partition: made.partition,
                offset: offset.map_err(Clone::clone),
            }
        });
        Poll::Ready(results.collect())
    }
}

impl Future for Appending {
    type Output = Vec<RecordResult>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_results(cx.waker())
    }
}

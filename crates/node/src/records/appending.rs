//! Appending records: those of one partition become batches, which share a sync.
//!
//! What is wrong with a record is found before any is appended. Then each batch is appended or not by
//! itself: the answer says of every record what became of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use recordbatch::{Builder, Template};

use crate::Handle;
use crate::topics::{Placed, ProduceError, Topic, Topics, Unconfirmed, partition_of};

/// A record that is to be appended.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// Records of one key lie in one partition, in their order.
    pub key: Option<&'a [u8]>,
    /// What it says; `None` takes the key away where only the newest of each key is kept.
    pub value: Option<&'a [u8]>,
    /// Its headers, in their order.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// The partition, if it is not to be found by the key.
    pub partition: Option<u32>,
}

/// Why none of the records is appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {index}: {reason}")]
pub struct BadRecords {
    /// The first record that is wrong, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub reason: Bad,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// The topic has no such partition.
    #[error("there is no partition {partition}, the topic has {partitions}")]
    Partition {
        /// What was asked for.
        partition: u32,
        /// How many there are.
        partitions: u32,
    },
    /// It has no key, and only the newest record of each key is kept.
    #[error("it has no key, and the topic is compacted")]
    NoKey,
    /// It is larger than a batch of the topic may be.
    #[error(
        "it takes {size} bytes, and a batch of the topic at most {size_max} (max.message.bytes)"
    )]
    Large {
        /// Bytes of a batch that holds nothing else.
        size: usize,
        /// What the topic takes.
        size_max: usize,
    },
}

/// Why a record was not appended, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAppended {
    /// It was not.
    #[error(transparent)]
    Refused(#[from] ProduceError),
    /// Nobody knows.
    #[error(transparent)]
    Unconfirmed(#[from] Unconfirmed),
}

/// Where a record is, as sure as its topic makes that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// In which partition.
    pub partition: u32,
    /// Its offset there.
    pub offset: Result<u64, NotAppended>,
}

/// Records that were appended, and are waited for: a future, or something to look at.
#[must_use = "nothing is told before this says so"]
#[derive(Debug)]
pub struct Appending {
    batches: Vec<Made>,
    /// Of each record: its batch, and its place in it.
    places: Vec<(usize, u64)>,
}

/// A batch, and what became of it.
#[derive(Debug)]
struct Made {
    partition: u32,
    placed: Result<Placed, NotAppended>,
    is_told: bool,
}

/// What a record's numbers take in a batch, at most: its length, its attributes, its time, its offset, the
/// lengths of its key and its value and the count of its headers, as varints.
const RECORD_AROUND: usize = 5 + 1 + 10 + 5 + 5 + 5 + 5;

/// What a header's lengths take, at most.
const HEADER_AROUND: usize = 5 + 5;

impl Handle {
    /// Appends records to a topic; without topics, what was found cannot be there.
    pub fn append_records(
        &self,
        topics: &Topics,
        topic: &Topic,
        records: &[NewRecord<'_>],
    ) -> Result<Appending, BadRecords> {
        let mut making = Making::new(self, topic);
        for (index, record) in records.iter().enumerate() {
            let bad = |reason| BadRecords { index, reason };
            making.take(record).map_err(bad)?;
        }
        Ok(making.append(topics, topic))
    }
}

/// Batches while they are filled.
struct Making {
    partitions: u32,
    size_max: usize,
    is_compacted: bool,
    now_ms: i64,
    /// Where records without a key go, all of them.
    keyless: u32,
    /// Full ones, and their partitions.
    full: Vec<(u32, Vec<u8>)>,
    /// What is being filled, with the places of its records among all.
    open: BTreeMap<u32, (Builder, Vec<usize>)>,
    places: Vec<(usize, u64)>,
}

impl Making {
    fn new(node: &Handle, topic: &Topic) -> Self {
        let ports = &node.inner.ports;
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
        // One round, so that one sync serves all of it; it ends with this function.
        let mut producing = topics.producing();
        let batches = self.full.iter().map(|(partition, bytes)| Made {
            partition: *partition,
            placed: producing
                .append(topic, *partition, bytes, None)
                .map_err(NotAppended::from),
            is_told: false,
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
    /// What became of each record, in their order; until that is known nothing, and the waker is woken
    /// once it may be.
    pub fn poll_told(&mut self, waker: &Waker) -> Poll<Vec<Told>> {
        for made in self.batches.iter_mut().filter(|it| !it.is_told) {
            if let Ok(placed) = &made.placed
                && let Err(unconfirmed) = ready!(placed.durable.poll_durable(waker))
            {
                made.placed = Err(unconfirmed.into());
            }
            made.is_told = true;
        }
        let told = self.places.iter().map(|(batch, place)| {
            let made = &self.batches[*batch];
            let offset = made.placed.as_ref().map(|it| it.offset + place);
            Told {
                partition: made.partition,
                offset: offset.map_err(Clone::clone),
            }
        });
        Poll::Ready(told.collect())
    }
}

impl Future for Appending {
    type Output = Vec<Told>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_told(cx.waker())
    }
}

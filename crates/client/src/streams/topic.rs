//! `Topic`: appends to and reads topics, the same that Kafka clients use, without a Kafka client.
//!
//! ```no_run
//! use telpher_client::Client;
//! use telpher_client::topic::NewRecord;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("tcp://127.0.0.1:7400").await?;
//! let orders = client.topic("orders");
//! let positions = orders.append(&[NewRecord::keyed("customer-7", "two books")]).await?;
//! let mut records = orders.partition(positions[0].partition).follow(positions[0].offset);
//! let record = records.next().await.expect("the stream does not end")?;
//! assert_eq!(record.value.as_deref(), Some(&b"two books"[..]));
//! # Ok(())
//! # }
//! ```

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use wire::{AppendedRecords, Cast, TopicHeaders, TopicRecord};

use crate::state::clock::Timeout;
use crate::streams::follow::Follow;
use crate::streams::handle::StreamHandle;
use crate::streams::page::{self, ReadLimit, RecordPage};
use crate::{CallError, Client};

/// Offset that stands for the end of a partition in a read request.
const END: u64 = u64::MAX;

/// A topic, from [`Client::topic`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Topic {
    handle: StreamHandle,
}

/// A partition of a topic, from [`Topic::partition`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Its name is `topic/partition`.
    handle: StreamHandle,
}

/// A record to append.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRecord {
    /// Key. It selects the partition, with the same hash as Kafka clients, so records of one key
    /// stay in order.
    pub key: Option<Vec<u8>>,
    /// Value; `None` deletes the key in a compacted topic.
    pub value: Option<Vec<u8>>,
    /// Headers: names of at most 65,535 bytes with optional values.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Partition; overrides the choice by key.
    pub partition: Option<u32>,
}

/// Position of a record in a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    /// Partition number.
    pub partition: u32,
    /// Offset in the partition.
    pub offset: u64,
}

/// A record of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset in the partition.
    pub offset: u64,
    /// Time from the producer or the node, depending on the topic's configuration, in milliseconds
    /// since 1970-01-01 UTC.
    pub timestamp_ms: i64,
    /// Key.
    pub key: Option<Bytes>,
    /// Value.
    pub value: Option<Bytes>,
    /// Headers in order.
    pub headers: Vec<(String, Option<Bytes>)>,
}

/// A part of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// First offset retained.
    pub start: u64,
    /// Offset after the last readable record.
    pub end: u64,
    /// Records in order; offsets may have gaps.
    pub records: Vec<Record>,
    /// Offset to continue from.
    pub next: u64,
}

impl NewRecord {
    /// Creates a record without a key.
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        Self {
            value: Some(value.into()),
            ..Self::default()
        }
    }

    /// Creates a record with a key.
    pub fn keyed(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self {
            key: Some(key.into()),
            ..Self::new(value)
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut buffer = Vec::new();
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.as_deref()));
        let record = TopicRecord {
            partition: self.partition,
            key: self.key.as_deref(),
            headers: TopicHeaders::encode(headers, &mut buffer),
            value: self.value.as_deref(),
        };
        let mut out = Vec::new();
        record.encode(&mut out);
        out
    }
}

impl Client {
    /// Returns the topic `name`. The first append creates it if the node may create topics.
    pub fn topic(&self, name: &str) -> Topic {
        Topic {
            handle: StreamHandle::new(self, name, Cast::Topic),
        }
    }
}

impl Topic {
    /// Returns the topic's name.
    pub fn name(&self) -> &str {
        &self.handle.name
    }

    /// Sets how long an append may take; `None` for no limit.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.handle.deadline = Timeout::new(deadline.into());
        self
    }

    /// Appends records and waits until they are as durable as the topic is configured to make them
    /// (default: on disk). Returns the position of each record, in order. After `unconfirmed` the
    /// records may or may not be stored, and a retry may store them twice.
    pub async fn append(&self, records: &[NewRecord]) -> Result<Vec<RecordPosition>, CallError> {
        let records: Vec<_> = records.iter().map(NewRecord::encode).collect();
        let payload = self.handle.append(None, &records).await?;
        let appended =
            AppendedRecords::decode(&payload).map_err(|error| CallError::malformed(&error))?;
        let position = |(partition, offset)| RecordPosition { partition, offset };
        Ok(appended.places().map(position).collect())
    }

    /// Returns partition `number`, from 0.
    pub fn partition(&self, number: u32) -> Partition {
        let name = format!("{}/{number}", self.handle.name).into();
        let handle = self.handle.clone();
        Partition {
            handle: StreamHandle { name, ..handle },
        }
    }
}

impl Partition {
    /// Returns the first offset retained and the offset after the last readable record.
    pub async fn bounds(&self) -> Result<(u64, u64), CallError> {
        let page = self.read(END).await?;
        Ok((page.start, page.end))
    }

    /// Reads records from offset `from`, with the default [`ReadLimit`]; returns none at the end.
    pub async fn read(&self, from: u64) -> Result<Page, CallError> {
        self.read_at_most(from, ReadLimit::default()).await
    }

    /// Reads records from offset `from`, up to `limit`.
    pub async fn read_at_most(&self, from: u64, limit: ReadLimit) -> Result<Page, CallError> {
        let RecordPage {
            start,
            next: end,
            records,
        } = self.handle.read(from, limit).await?;
        let next = records.last().map_or(end, |last| last.offset + 1);
        let records = records.into_iter().map(Record::decode);
        Ok(Page {
            start,
            end,
            records: records.collect::<Result<_, _>>()?,
            next,
        })
    }

    /// Reads records from offset `from` and waits for new ones.
    pub fn follow(&self, from: u64) -> FollowRecords {
        FollowRecords(Follow::new(self.handle.clone(), from))
    }
}

/// Existing and future records of a partition, from [`Partition::follow`].
///
/// The stream survives reconnects and continues after the last record that it yielded. It ends with
/// an error followed by `None`.
#[must_use = "nothing is read unless it is polled"]
#[derive(Debug)]
pub struct FollowRecords(Follow);

impl FollowRecords {
    /// Returns the next record; waits without a limit.
    pub async fn next(&mut self) -> Option<Result<Record, CallError>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next record.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Record, CallError>>> {
        let record = ready!(self.0.poll_record(cx));
        Poll::Ready(record.map(|record| record.and_then(Record::decode)))
    }
}

impl Record {
    fn decode(record: page::Record) -> Result<Self, CallError> {
        let decoded =
            TopicRecord::decode(&record.body).map_err(|error| CallError::malformed(&error))?;
        let slice = |bytes: &[u8]| record.body.slice_ref(bytes);
        let headers = decoded.headers.iter();
        let headers = headers.map(|(name, value)| (name.to_owned(), value.map(slice)));
        Ok(Self {
            offset: record.offset,
            // The wire format has the two's complement of the signed time.
            timestamp_ms: record.time_ms.cast_signed(),
            key: decoded.key.map(slice),
            value: decoded.value.map(slice),
            headers: headers.collect(),
        })
    }
}

//! Topics that the node keeps: what Kafka's clients produce and consume, without a Kafka client.
//!
//! ```no_run
//! use telpher_client::Client;
//! use telpher_client::topic::NewRecord;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("tcp://127.0.0.1:7400").await?;
//! let orders = client.topic("orders");
//! let places = orders.append(&[NewRecord::keyed("customer-7", "two books")]).await?;
//! let mut records = orders.partition(places[0].partition).follow(places[0].offset);
//! let record = records.next().await.expect("it goes on for ever")?;
//! assert_eq!(record.value.as_deref(), Some(&b"two books"[..]));
//! # Ok(())
//! # }
//! ```

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use wire::{Append, AppendedRecords, Cast, Kind, TopicHeaders, TopicRecord};

use crate::clock::Timeout;
use crate::follow::Follow;
use crate::messaging::protocol;
use crate::stream::{Extract, ReadLimit, ask, outgoing};
use crate::{CallError, Client};

/// What stands for the end of a partition in a question.
const END: u64 = u64::MAX;

/// A topic, from [`Client::topic`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Topic {
    client: Client,
    name: Arc<str>,
    deadline: Timeout,
}

/// A partition of a topic, from [`Topic::partition`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Partition {
    client: Client,
    /// `topic/partition`
    name: Arc<str>,
    deadline: Timeout,
}

/// A record that is to be appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRecord {
    /// Records of one key lie in one partition, in their order: the one that Kafka's clients choose.
    pub key: Option<Vec<u8>>,
    /// What it says; `None` takes the key away where only the newest of each key is kept.
    pub value: Option<Vec<u8>>,
    /// Names of at most 65,535 bytes, each perhaps with a value.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// The partition, whatever the key says.
    pub partition: Option<u32>,
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// In which partition.
    pub partition: u32,
    /// Its offset there.
    pub offset: u64,
}

/// A record of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place.
    pub offset: u64,
    /// The producer's time or the node's, as the topic has it, in milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: i64,
    /// What it is about.
    pub key: Option<Bytes>,
    /// What it says.
    pub value: Option<Bytes>,
    /// Its headers, in their order.
    pub headers: Vec<(String, Option<Bytes>)>,
}

/// A part of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The first offset there is.
    pub start: u64,
    /// Behind the last one that can be read.
    pub end: u64,
    /// The records, in order; offsets may be missing between them.
    pub records: Vec<Record>,
    /// The offset to go on from.
    pub next: u64,
}

impl NewRecord {
    /// One without a key.
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        Self {
            value: Some(value.into()),
            ..Self::default()
        }
    }

    /// One with a key.
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
    /// The topic of that name. The node makes one that is not there by the first append, if it may.
    pub fn topic(&self, name: &str) -> Topic {
        Topic {
            client: self.clone(),
            name: name.into(),
            deadline: self.core().options.deadline,
        }
    }
}

impl Topic {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long appending may take; `None` for ever.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = Timeout::new(deadline.into());
        self
    }

    /// Appends records, and waits until they are as safe as the topic makes them: on disk, unless it is
    /// configured otherwise. The place of each, in their order. After `unconfirmed` nobody knows, and to
    /// try again may double some.
    pub async fn append(&self, records: &[NewRecord]) -> Result<Vec<Place>, CallError> {
        let records: Vec<_> = records.iter().map(NewRecord::encode).collect();
        let mut body = Vec::new();
        Append::encode(None, &records, &mut body);
        let outgoing = outgoing(Kind::APPEND, Cast::Topic, &self.name, &body);
        let payload = ask(&self.client, self.deadline, &outgoing).await?;
        let appended = AppendedRecords::decode(&payload).map_err(|error| protocol(&error))?;
        let place = |(partition, offset)| Place { partition, offset };
        Ok(appended.places().map(place).collect())
    }

    /// The partition of that number, from 0.
    pub fn partition(&self, number: u32) -> Partition {
        Partition {
            client: self.client.clone(),
            name: format!("{}/{number}", self.name).into(),
            deadline: self.deadline,
        }
    }
}

impl Partition {
    /// Where it begins, and behind which offset nothing can be read.
    pub async fn bounds(&self) -> Result<(u64, u64), CallError> {
        let page = self.read(END).await?;
        Ok((page.start, page.end))
    }

    /// Reads records from an offset on, as many as fit into one answer; none at the end.
    pub async fn read(&self, from: u64) -> Result<Page, CallError> {
        self.read_at_most(from, ReadLimit::default()).await
    }

    /// Reads no more than that.
    pub async fn read_at_most(&self, from: u64, limit: ReadLimit) -> Result<Page, CallError> {
        let body = limit.from(from);
        let outgoing = outgoing(Kind::READ, Cast::Topic, &self.name, &body);
        let payload = ask(&self.client, self.deadline, &outgoing).await?;
        let Extract {
            start,
            next: end,
            records,
        } = Extract::decode(&payload)?;
        let next = records.last().map_or(end, |last| last.offset + 1);
        let records = records.into_iter().map(Record::decode);
        Ok(Page {
            start,
            end,
            records: records.collect::<Result<_, _>>()?,
            next,
        })
    }

    /// Reads records from an offset on, and waits for those to come.
    pub fn follow(&self, from: u64) -> FollowRecords {
        let client = self.client.clone();
        FollowRecords(Follow::new(client, &self.name, Cast::Topic, from))
    }
}

/// Records of a partition, and those to come, from [`Partition::follow`].
///
/// It survives reconnects, and goes on behind the last record that it yielded. It ends with an error and
/// then `None`.
#[must_use = "nothing is read unless it is polled"]
#[derive(Debug)]
pub struct FollowRecords(Follow);

impl FollowRecords {
    /// The next record; waits for it as long as it takes.
    pub async fn next(&mut self) -> Option<Result<Record, CallError>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same for whoever waits for several.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Record, CallError>>> {
        let record = ready!(self.0.poll_record(cx));
        Poll::Ready(record.map(|record| record.and_then(Record::decode)))
    }
}

impl Record {
    fn decode(record: crate::stream::Record) -> Result<Self, CallError> {
        let decoded = TopicRecord::decode(&record.body).map_err(|error| protocol(&error))?;
        let slice = |bytes: &[u8]| record.body.slice_ref(bytes);
        let headers = decoded.headers.iter();
        let headers = headers.map(|(name, value)| (name.to_owned(), value.map(slice)));
        Ok(Self {
            offset: record.offset,
            // As it is written: in two's complement.
            timestamp_ms: record.time_ms.cast_signed(),
            key: decoded.key.map(slice),
            value: decoded.value.map(slice),
            headers: headers.collect(),
        })
    }
}

//! Streams of records that the node keeps: appending, reading.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Name, NameError};
use wire::{Append, Cast, Flags, Kind};

use crate::clock::Timeout;
use crate::exchange::{Exchange, Terms};
use crate::follow::Follow;
use crate::link::Outgoing;
use crate::messaging::protocol;
use crate::routes::Target;
use crate::{CallError, Client};

/// Records of one answer, at most, unless it is said otherwise.
const RECORDS_MAX: u32 = 10_000;

/// Bytes of one answer, at most, unless it is said otherwise.
const BYTES_MAX: u32 = 1 << 20;

/// A stream of records that a node keeps, from [`Client::stream`]. Cheap to clone.
///
/// Whatever is acknowledged is on disk. Offsets are dense from 0 and never used twice; what was
/// appended is never changed.
#[derive(Clone, Debug)]
pub struct RecordStream {
    client: Client,
    name: Name,
    deadline: Timeout,
}

/// Where records went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first.
    pub first: u64,
    /// The offset that the next record of anybody will get.
    pub next: u64,
}

/// One record of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// What was appended.
    pub body: Bytes,
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extract {
    /// The oldest offset that is kept.
    pub start: u64,
    /// The offset behind the newest record.
    pub next: u64,
    /// The records, in order; the last one need not be the newest.
    pub records: Vec<Record>,
}

/// How much one answer may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// Records, at most.
    pub records_max: u32,
    /// Their bytes, at most; one record comes even if it is larger.
    pub bytes_max: u32,
}

impl Default for ReadLimit {
    fn default() -> Self {
        Self {
            records_max: RECORDS_MAX,
            bytes_max: BYTES_MAX,
        }
    }
}

impl Client {
    /// The stream of that name (`org/namespace/x`, or a bare `x`). It exists once something was
    /// appended to it.
    pub fn stream(&self, name: &str) -> Result<RecordStream, NameError> {
        Ok(RecordStream {
            client: self.clone(),
            name: Name::parse(name)?,
            deadline: self.core().options.deadline,
        })
    }
}

impl RecordStream {
    /// Its full name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// How long appending and reading may take; `None` for ever.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = Timeout::new(deadline.into());
        self
    }

    /// Appends records, all or none, and waits until they are on disk. After `unconfirmed` nobody
    /// knows: [`RecordStream::append_expecting`] makes a repetition safe.
    pub async fn append(&self, records: &[impl AsRef<[u8]>]) -> Result<Appended, CallError> {
        self.try_append(None, records).await
    }

    /// Appends records if the first one gets the offset `expected`; else it is a `conflict`, and
    /// [`RecordStream::end_of_conflict`] says where the stream ends.
    pub async fn append_expecting(
        &self,
        expected: u64,
        records: &[impl AsRef<[u8]>],
    ) -> Result<Appended, CallError> {
        self.try_append(Some(expected), records).await
    }

    /// The offset that an append would have had to expect, when that is what went wrong.
    pub fn end_of_conflict(error: &CallError) -> Option<u64> {
        number_of_conflict(error)
    }

    async fn try_append(
        &self,
        expected: Option<u64>,
        records: &[impl AsRef<[u8]>],
    ) -> Result<Appended, CallError> {
        let size: usize = records.iter().map(|record| record.as_ref().len() + 4).sum();
        let mut body = Vec::with_capacity(size + 12);
        Append::encode(expected, records, &mut body);
        let payload = self.ask(Kind::APPEND, &body).await?;
        let appended = wire::Appended::decode(&payload).map_err(|error| protocol(&error))?;
        let wire::Appended { first, next } = appended;
        Ok(Appended { first, next })
    }

    /// Reads records from an offset on, as many as fit into one answer; none when the stream does
    /// not exist or ends there.
    pub async fn read(&self, from: u64) -> Result<Extract, CallError> {
        self.read_at_most(from, ReadLimit::default()).await
    }

    /// Reads no more than that.
    pub async fn read_at_most(&self, from: u64, limit: ReadLimit) -> Result<Extract, CallError> {
        let payload = self.ask(Kind::READ, &limit.from(from)).await?;
        Extract::decode(&payload)
    }

    /// Reads records from an offset on, and waits for those to come.
    pub fn follow(&self, from: u64) -> Follow {
        Follow::new(self.client.clone(), self.name.as_str(), Cast::Stream, from)
    }

    async fn ask(&self, kind: Kind, body: &[u8]) -> Result<Bytes, CallError> {
        let outgoing = outgoing(kind, Cast::Stream, self.name.as_str(), body);
        ask(&self.client, self.deadline, &outgoing).await
    }
}

impl ReadLimit {
    pub(crate) fn from(self, from: u64) -> [u8; wire::Read::SIZE] {
        let read = wire::Read {
            from,
            records_max: self.records_max,
            bytes_max: self.bytes_max,
        };
        read.encode()
    }
}

impl Extract {
    pub(crate) fn decode(payload: &Bytes) -> Result<Self, CallError> {
        let extract = wire::Extract::decode(payload).map_err(|error| protocol(&error))?;
        let wire::Extract { start, next, .. } = extract;
        let records = extract.records().map(|record| Record {
            offset: record.offset,
            time_ms: record.time_ms,
            body: payload.slice_ref(record.bytes),
        });
        Ok(Self {
            start,
            next,
            records: records.collect(),
        })
    }
}

/// Asks the node for something that it keeps.
pub(crate) async fn ask(
    client: &Client,
    deadline: Timeout,
    outgoing: &Outgoing<'_>,
) -> Result<Bytes, CallError> {
    let mut exchange = Exchange::new(client.core());
    let terms = Terms::new(deadline);
    let exchanged = poll_fn(|cx| exchange.poll(outgoing, terms, cx)).await;
    exchanged.outcome
}

/// The number that an append would have had to expect, when that is what went wrong.
pub(crate) fn number_of_conflict(error: &CallError) -> Option<u64> {
    match error.code {
        ErrorCode::Conflict => Some(u64::from_le_bytes(error.details.first_chunk().copied()?)),
        _ => None,
    }
}

pub(crate) fn outgoing<'a>(kind: Kind, cast: Cast, name: &'a str, body: &'a [u8]) -> Outgoing<'a> {
    Outgoing {
        kind,
        flags: Flags::NONE,
        target: Target {
            name,
            method: "",
            cast,
        },
        metadata: &[],
        body,
    }
}

//! `RecordStream`: appends to and reads from a stream of records stored at a node.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Name, NameError};
use wire::{Append, Cast, Flags, Kind};

use crate::clock::Timeout;
use crate::exchange::{Exchange, WaitLimits};
use crate::follow::Follow;
use crate::link::Outgoing;
use crate::messaging::protocol;
use crate::routes::Target;
use crate::{CallError, Client};

/// Default limit of records per read.
const RECORDS_MAX: u32 = 10_000;

/// Default limit of bytes per read.
const BYTES_MAX: u32 = 1 << 20;

/// A stream of records that a node stores, from [`Client::stream`]. Cheap to clone.
///
/// An acknowledged record is on disk. Offsets are dense from 0 and never reused; a record never
/// changes.
#[derive(Clone, Debug)]
pub struct RecordStream {
    client: Client,
    name: Name,
    deadline: Timeout,
}

/// Offsets assigned by an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedOffsets {
    /// Offset of the first record appended.
    pub first: u64,
    /// Offset that the next record in the stream will get.
    pub next: u64,
}

/// One record of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset in the stream.
    pub offset: u64,
    /// Time of the append, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// Bytes of the record.
    pub body: Bytes,
}

/// A contiguous part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPage {
    /// Oldest offset retained.
    pub start: u64,
    /// Offset after the newest record of the stream.
    pub next: u64,
    /// Records in order; the stream may continue after the last.
    pub records: Vec<Record>,
}

/// Limits of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// Maximum number of records.
    pub records_max: u32,
    /// Maximum size of the records in bytes; the first record is returned even if it is larger.
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
    /// Returns the stream `name` (`org/namespace/x`, or just `x`). The first append creates the
    /// stream.
    pub fn stream(&self, name: &str) -> Result<RecordStream, NameError> {
        Ok(RecordStream {
            client: self.clone(),
            name: Name::parse(name)?,
            deadline: self.core().options.deadline,
        })
    }
}

impl RecordStream {
    /// Returns the full name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Sets how long an append or a read may take; `None` for no limit.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = Timeout::new(deadline.into());
        self
    }

    /// Appends records, all or none, and waits until they are on disk. After `unconfirmed` they may
    /// or may not be stored; [`RecordStream::append_expecting`] makes a retry safe.
    pub async fn append(&self, records: &[impl AsRef<[u8]>]) -> Result<AppendedOffsets, CallError> {
        self.try_append(None, records).await
    }

    /// Appends records if the first one gets the offset `expected`. Otherwise fails with
    /// `conflict`; [`RecordStream::end_of_conflict`] returns the actual end of the stream.
    pub async fn append_expecting(
        &self,
        expected: u64,
        records: &[impl AsRef<[u8]>],
    ) -> Result<AppendedOffsets, CallError> {
        self.try_append(Some(expected), records).await
    }

    /// Returns the end of the stream from a `conflict` error; `None` for other errors.
    pub fn end_of_conflict(error: &CallError) -> Option<u64> {
        number_of_conflict(error)
    }

    async fn try_append(
        &self,
        expected: Option<u64>,
        records: &[impl AsRef<[u8]>],
    ) -> Result<AppendedOffsets, CallError> {
        let size: usize = records.iter().map(|record| record.as_ref().len() + 4).sum();
        let mut body = Vec::with_capacity(size + 12);
        Append::encode(expected, records, &mut body);
        let payload = self.ask(Kind::APPEND, &body).await?;
        let appended = wire::Appended::decode(&payload).map_err(|error| protocol(&error))?;
        let wire::Appended { first, next } = appended;
        Ok(AppendedOffsets { first, next })
    }

    /// Reads records from offset `from`, with the default [`ReadLimit`]. Returns no records when
    /// the stream does not exist or ends before that offset.
    pub async fn read(&self, from: u64) -> Result<RecordPage, CallError> {
        self.read_at_most(from, ReadLimit::default()).await
    }

    /// Reads records from offset `from`, up to `limit`.
    pub async fn read_at_most(&self, from: u64, limit: ReadLimit) -> Result<RecordPage, CallError> {
        let payload = self.ask(Kind::READ, &limit.from(from)).await?;
        RecordPage::decode(&payload)
    }

    /// Reads records from offset `from` and waits for new ones.
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

impl RecordPage {
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

/// Sends a request to the node and waits for its answer.
pub(crate) async fn ask(
    client: &Client,
    deadline: Timeout,
    outgoing: &Outgoing<'_>,
) -> Result<Bytes, CallError> {
    let mut exchange = Exchange::new(client.core());
    let limits = WaitLimits::new(deadline);
    let result = poll_fn(|cx| exchange.poll(outgoing, limits, cx)).await;
    result.outcome
}

/// Returns the expected number from the details of a `conflict` error.
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

//! Raw streams: appends and reads.

use journal::{AppendError, Guard, Reach, ReadError, ReadLimit, ShardId, StreamId};
use model::{Name, SYSTEM_ORG};
use platform::{Counter, Pending, RequestContext};

use crate::directory::{Kind, Location};
use crate::error::StreamError;
use crate::store::{AppendSize, Store};
use crate::streams::Streams;

/// Maximum size of one answer, in bytes; readers get the rest with later requests.
const BYTES_MAX: u32 = 4 << 20;

/// Maximum number of records in one answer.
const RECORDS_MAX: u32 = 65_536;

/// The tag of every record.
const TAG: u8 = 1;

/// The range of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first offset.
    pub from: u64,
    /// Maximum number of records.
    pub records_max: u32,
    /// Maximum size of the records in bytes; one record is returned even if it is larger.
    pub bytes_max: u32,
}

impl Range {
    fn limit(&self) -> ReadLimit {
        ReadLimit {
            records: self.records_max.clamp(1, RECORDS_MAX) as usize,
            bytes: self.bytes_max.min(BYTES_MAX) as usize,
        }
    }
}

/// A stream that a client uses. It need not exist.
#[derive(Clone, Debug)]
pub struct Stream {
    name: Name,
    /// The stream's location, once it was looked up for an append; it never changes.
    location: Option<Location>,
}

/// Records that were appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedRecords {
    /// The offset of the first record.
    pub first: u64,
    /// The offset after the last record.
    pub next: u64,
}

/// A record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRecord<'a> {
    /// The offset.
    pub offset: u64,
    /// The time of the append, in milliseconds since 1970-01-01 UTC.
    pub time_ms: u64,
    /// Opaque bytes.
    pub bytes: &'a [u8],
}

/// The result of a read.
#[derive(Clone, Debug)]
pub struct StreamExtract(journal::Read);

impl Stream {
    /// Returns the stream with that name, or the reason why the name is not valid for a stream.
    pub fn new(name: Name) -> Result<Self, String> {
        check_stream_name(&name)?;
        Ok(Self {
            name,
            location: None,
        })
    }

    /// Returns the name.
    pub fn name(&self) -> &Name {
        &self.name
    }
}

impl StreamExtract {
    /// Returns the oldest retained offset.
    pub fn start(&self) -> u64 {
        self.0.start
    }

    /// Returns the offset after the newest durable record.
    pub fn next(&self) -> u64 {
        self.0.next_durable
    }

    /// Returns the records, in order.
    pub fn records(&self) -> impl ExactSizeIterator<Item = StoredRecord<'_>> {
        self.0.records.iter().map(|record| StoredRecord {
            offset: record.offset,
            time_ms: record.time_ms,
            bytes: &record.payload,
        })
    }

    /// Returns the offset of the last record, if there is any.
    pub(crate) fn last_offset(&self) -> Option<u64> {
        self.0.records.last().map(|record| record.offset)
    }
}

impl Streams {
    /// Appends records to a stream, all or none. The outcome is known once they are on disk.
    pub fn append<'r>(
        &self,
        stream: &mut Stream,
        expected: Option<u64>,
        records: impl Iterator<Item = &'r [u8]> + Clone,
        mut context: RequestContext<'_>,
    ) -> Result<Pending<AppendedRecords, StreamError>, StreamError> {
        let store = &self.store;
        let size = size_of_all(records.clone());
        if size.count == 0 {
            return Err(StreamError::NoRecords);
        }
        let now_ms = context.unix_ms;
        let round = context.round(&store.journal);
        let lock = |shard| round.lock(shard, now_ms);
        let Some((guard, location)) = store.lock_stream(stream, expected, size, lock)? else {
            return Ok(Pending::known(Err(StreamError::Conflict { next: 0 })));
        };
        let (outcome, ticket) = store.append(guard, location.stream, expected, records, size)?;
        context.tally.add(Counter::Appends, size.count as u64);
        context.tally.add(Counter::Bytes, size.bytes as u64);
        Ok(Pending::new(&store.journal, ticket, outcome))
    }

    /// Reads durable records of a stream from memory; `None` if they have to be read from the disk.
    pub fn read_at_once(
        &self,
        stream: &Stream,
        range: Range,
    ) -> Result<Option<StreamExtract>, StreamError> {
        let store = &self.store;
        store.read(Reach::Memory, store.raw(&stream.name), range)
    }

    /// Reads durable records of a stream on a thread that may wait for the disk.
    pub fn read(&self, stream: &Stream, range: Range) -> Pending<StreamExtract, StreamError> {
        let (store, name) = (self.store.clone(), stream.name.clone());
        self.platform.offload(move || {
            let read = store.read(Reach::Disk, store.raw(&name), range)?;
            Ok(read.unwrap_or_else(StreamExtract::empty))
        })
    }
}

impl StreamExtract {
    fn empty() -> Self {
        Self(journal::Read {
            records: Vec::new(),
            start: 0,
            next_durable: 0,
        })
    }
}

/// Checks whether a name is valid for a stream.
fn check_stream_name(name: &Name) -> Result<(), String> {
    if name.org() == SYSTEM_ORG {
        return Err(format!(
            "names of `{SYSTEM_ORG}/` belong to the node itself"
        ));
    }
    match name.instance() {
        None => Ok(()),
        Some(_) => Err(format!("a stream has no instances: `{}`", name.base())),
    }
}

/// Returns the size of an append of records.
fn size_of_all<'r>(records: impl Iterator<Item = &'r [u8]>) -> AppendSize {
    records.fold(AppendSize::default(), |size, record| AppendSize {
        bytes: size.bytes + record.len(),
        count: size.count + 1,
    })
}

type StreamAppend = (
    Result<AppendedRecords, StreamError>,
    Option<journal::Ticket>,
);

impl Store {
    /// Locks the shard of a stream for an append, and creates the stream if necessary; `None` if it
    /// does not exist but the append expects it to.
    fn lock_stream<'g>(
        &self,
        stream: &mut Stream,
        expected: Option<u64>,
        size: AppendSize,
        lock: impl Fn(ShardId) -> Guard<'g>,
    ) -> Result<Option<(Guard<'g>, Location)>, StreamError> {
        let name = stream.name.base();
        if stream.location.is_none() {
            stream.location = self.find(Kind::Raw, name);
        }
        if let Some(location) = stream.location {
            return Ok(Some((lock(location.shard), location)));
        }
        // No stream is created for an append that would fail.
        if matches!(expected, Some(1..)) {
            return Ok(None);
        }
        self.check_names(Kind::Raw, name)?;
        let shard = self.shard_of(name);
        let locked = self.lock_or_create(shard, [(Kind::Raw, name)], size, lock);
        let (guard, [location]) = locked.map_err(|error| self.append_error(error))?;
        stream.location = Some(location);
        Ok(Some((guard, location)))
    }

    fn append<'r>(
        &self,
        mut guard: Guard<'_>,
        stream: StreamId,
        mut expected: Option<u64>,
        records: impl Iterator<Item = &'r [u8]>,
        size: AppendSize,
    ) -> Result<StreamAppend, StreamError> {
        let refused = |error: AppendError| self.append_error(error);
        if size.count > 1 {
            guard.reserve(size.bytes, size.count).map_err(refused)?;
        }
        let mut first = None;
        let mut last = None;
        for record in records {
            match guard.append(stream, expected.take(), TAG, record) {
                Ok(appended) => {
                    first.get_or_insert(appended.offset);
                    last = Some(appended);
                }
                Err(AppendError::Conflict { next, ticket }) => {
                    return Ok((Err(StreamError::Conflict { next }), Some(ticket)));
                }
                Err(error) => return Err(refused(error).into()),
            }
        }
        let next = last.map_or(0, |last| last.offset + 1);
        let appended = AppendedRecords {
            first: first.unwrap_or(next),
            next,
        };
        Ok((Ok(appended), last.map(|last| last.ticket)))
    }

    /// Returns the raw stream with that name.
    pub(crate) fn raw(&self, name: &Name) -> Option<Location> {
        self.find(Kind::Raw, name.base())
    }

    /// Reads a stream, which need not exist; `None` if the records are not within reach.
    pub(crate) fn read(
        &self,
        reach: Reach,
        location: Option<Location>,
        range: Range,
    ) -> Result<Option<StreamExtract>, StreamError> {
        let Some(location) = location else {
            return Ok(Some(StreamExtract::empty()));
        };
        match self.read_within(reach, location, range.from, range.limit()) {
            Ok(read) => Ok(read.map(StreamExtract)),
            Err(ReadError::Trimmed { start }) => Err(StreamError::Trimmed { start }),
            Err(error) => Err(error.into()),
        }
    }
}

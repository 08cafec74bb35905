//! Raw streams: appends and reads.

use journal::{AppendError, ReadError, ReadLimit, StreamId};
use model::{ErrorCode, Name};
use quota::Unit;
use routing::Ticket;

use super::answers::{Answer, Waiting};
use super::directory::{Kind, Location};
use super::restore::Reach;
use super::{Store, refusal, unreadable};
use crate::connection::{Local, Route};
use crate::counters::Counter;
use crate::ports::offload::Overloaded;
use crate::ports::{Extract, Failure, Outgoing, StoredRecord};
use crate::turn::{SYSTEM_ORG, Turn};

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

/// The refusal of a stream request, with the number in its details.
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(super) details: Option<u64>,
    pub(super) retry_after_ms: u32,
}

impl From<Overloaded> for Refusal {
    fn from(overloaded: Overloaded) -> Self {
        Self {
            retry_after_ms: Overloaded::RETRY_MS,
            ..(ErrorCode::Busy, overloaded.to_string()).into()
        }
    }
}

impl From<(ErrorCode, String)> for Refusal {
    fn from((code, message): (ErrorCode, String)) -> Self {
        Self {
            code,
            message,
            details: None,
            retry_after_ms: 0,
        }
    }
}

impl<'a> Turn<'a> {
    /// Appends records to a stream, all or none. They are acknowledged once they are on disk.
    pub fn append<'r>(
        &mut self,
        route: u16,
        tag: Ticket,
        expected: Option<u64>,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) {
        let size = records.clone().map(<[u8]>::len).sum::<usize>();
        if let Err(throttled) = self.admit(&[(Unit::APPENDED_BYTES, size as u64)]) {
            return self.fail(tag, throttled.as_failure());
        }
        match self.try_append(route, tag, expected, records) {
            Ok(waiting) => self.local.answers.push(waiting, size as u64),
            Err(refusal) => self.refuse_stream(tag, &refusal),
        }
    }

    fn try_append<'r>(
        &mut self,
        route: u16,
        tag: Ticket,
        expected: Option<u64>,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) -> Result<Waiting, Refusal> {
        let now_ms = self.unix_ms();
        let store = self.store()?;
        let Local { routes, round, .. } = &mut *self.local;
        let (name, known) = match routes.get_mut(usize::from(route).wrapping_sub(1)) {
            Some(Route::Stream { name, location }) => (&*name, location),
            other => return Err(no_stream(other.as_deref(), route).into()),
        };
        let size = Size::of(records.clone());
        let Some(location) = store.target(name, known, expected, size, now_ms)? else {
            return Ok(Waiting {
                tag,
                tickets: [None, None],
                answer: Answer::Conflict { next: 0 },
                slot: None,
            });
        };
        let round = round.get_or_insert_with(|| store.journal.round());
        let guard = round.lock(location.shard, now_ms);
        let (answer, ticket) = store.append(guard, location.stream, expected, records, size)?;
        let tickets = [store.creation(location.stream), ticket];
        self.local.tally.add(Counter::Appends, size.count as u64);
        self.local.tally.add(Counter::Bytes, size.bytes as u64);
        Ok(Waiting {
            tag,
            tickets,
            answer,
            slot: None,
        })
    }

    /// Reads durable records of a stream. The answer is sent at once, or after a read from disk.
    pub fn read(&mut self, route: u16, tag: Ticket, range: Range) {
        if self.is_conversation(route) {
            return self.read_messages(route, tag, range);
        }
        let read = self.stream(route).and_then(|(store, name)| {
            let location = store.readable(name);
            Ok((location, store.read(Reach::Memory, location, range)?))
        });
        match read {
            Ok((_, Some(read))) => self.answer(read.outgoing(tag, false).as_outgoing()),
            Ok((location, None)) => self.local.reads.push(tag, location, range),
            Err(refusal) => self.refuse_stream(tag, &refusal),
        }
    }

    /// Returns the storage.
    fn store(&self) -> Result<&'a Store, (ErrorCode, String)> {
        let store = self.inner.store.as_ref();
        store.ok_or_else(|| {
            (
                ErrorCode::Unsupported,
                "this node has no storage".to_owned(),
            )
        })
    }

    /// Returns the storage and the stream that a route is bound to.
    pub(super) fn stream(&self, route: u16) -> Result<(&Store, &Name), Refusal> {
        let store = self.store()?;
        match self.local.routes.get(usize::from(route).wrapping_sub(1)) {
            Some(Route::Stream { name, .. }) => Ok((store, name)),
            other => Err(no_stream(other, route).into()),
        }
    }

    pub(super) fn refuse_stream(&mut self, tag: Ticket, refusal: &Refusal) {
        let details = refusal.details.map(u64::to_le_bytes);
        let failure = Failure {
            details: details.as_ref().map_or(&[], |details| details),
            retry_after_ms: refusal.retry_after_ms,
            ..Failure::new(refusal.code, &refusal.message)
        };
        self.fail(tag, failure);
    }
}

/// Returns the error for a route that is not bound to a stream.
fn no_stream(found: Option<&Route>, route: u16) -> (ErrorCode, String) {
    let message = match found {
        Some(Route::Invalid { reason }) => reason.clone(),
        Some(
            Route::Bound { .. }
            | Route::Stream { .. }
            | Route::Conversation { .. }
            | Route::Topic(_),
        ) => "bind the route with cast `stream`".to_owned(),
        None => format!("route {route} is not bound"),
    };
    (ErrorCode::InvalidArgument, message)
}

/// Checks whether a name is valid for a stream.
pub(crate) fn check_stream_name(name: &Name) -> Result<(), String> {
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

/// The number and the size of records that are appended together.
#[derive(Clone, Copy)]
struct Size {
    count: usize,
    bytes: usize,
}

impl Size {
    fn of<'r>(records: impl Iterator<Item = &'r [u8]>) -> Self {
        records.fold(Self { count: 0, bytes: 0 }, |size, record| Self {
            count: size.count + 1,
            bytes: size.bytes + record.len(),
        })
    }
}

impl Store {
    /// Returns the stream to append to, creating it if necessary; `None` if it does not exist but
    /// the append expects it to.
    fn target(
        &self,
        name: &Name,
        known: &mut Option<Location>,
        expected: Option<u64>,
        size: Size,
        now_ms: u64,
    ) -> Result<Option<Location>, Refusal> {
        if size.count == 0 {
            let message = "the append has no records".to_owned();
            return Err((ErrorCode::InvalidArgument, message).into());
        }
        if known.is_none() {
            // No stream is created for an append that would fail.
            *known = match expected {
                Some(1..) => self.find(Kind::Raw, name.base()),
                _ => {
                    self.check_names(Kind::Raw, name.base())?;
                    let found = self.find_or_create(Kind::Raw, name.base(), now_ms);
                    Some(found.map_err(|error| refusal(&self.journal, error))?)
                }
            };
        }
        Ok(*known)
    }

    fn append<'r>(
        &self,
        mut guard: journal::Guard<'_>,
        stream: StreamId,
        mut expected: Option<u64>,
        records: impl Iterator<Item = &'r [u8]>,
        size: Size,
    ) -> Result<(Answer, Option<journal::Ticket>), Refusal> {
        let refused = |error| Refusal::from(refusal(&self.journal, error));
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
                    return Ok((Answer::Conflict { next }, Some(ticket)));
                }
                Err(error) => return Err(refused(error)),
            }
        }
        let next = last.map_or(0, |last| last.offset + 1);
        let answer = Answer::Appended {
            first: first.unwrap_or(next),
            next,
        };
        Ok((answer, last.map(|last| last.ticket)))
    }

    /// Returns the stream with that name, once its creation is durable.
    pub(super) fn readable(&self, name: &Name) -> Option<Location> {
        let location = self.find(Kind::Raw, name.base())?;
        self.creation(location.stream).is_none().then_some(location)
    }

    /// Reads a stream, which need not exist; `None` if the records are not within reach.
    pub(super) fn read(
        &self,
        reach: Reach,
        location: Option<Location>,
        range: Range,
    ) -> Result<Option<Read>, Refusal> {
        let Some(location) = location else {
            return Ok(Some(Read(journal::Read {
                records: Vec::new(),
                start: 0,
                next_durable: 0,
            })));
        };
        match self.read_within(reach, location, range.from, range.limit()) {
            Ok(read) => Ok(read.map(Read)),
            Err(ReadError::Trimmed { start }) => Err(Refusal {
                code: ErrorCode::InvalidArgument,
                message: format!("records before offset {start} are no longer stored"),
                details: Some(start),
                retry_after_ms: 0,
            }),
            Err(error) => Err(unreadable(&error).into()),
        }
    }
}

/// The result of a read.
pub(super) struct Read(pub(super) journal::Read);

/// The result of a read as output to the client.
pub(super) struct OutgoingExtract<'a> {
    tag: Ticket,
    more: bool,
    start: u64,
    next: u64,
    records: Vec<StoredRecord<'a>>,
}

impl Read {
    pub(super) fn outgoing(&self, tag: Ticket, more: bool) -> OutgoingExtract<'_> {
        let records = self.0.records.iter().map(|record| StoredRecord {
            offset: record.offset,
            time_ms: record.time_ms,
            bytes: &record.payload,
        });
        OutgoingExtract {
            tag,
            more,
            start: self.0.start,
            next: self.0.next_durable,
            records: records.collect(),
        }
    }
}

impl OutgoingExtract<'_> {
    pub(super) fn as_outgoing(&self) -> Outgoing<'_> {
        Outgoing::Extract {
            tag: self.tag,
            more: self.more,
            extract: Extract {
                start: self.start,
                next: self.next,
                records: &self.records,
            },
        }
    }
}

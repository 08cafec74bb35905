//! Raw streams: appending records and reading them.

use journal::{AppendError, ReadError, ReadLimit};
use model::{ErrorCode, Name};
use routing::Ticket;

use super::answers::{Answer, Waiting};
use super::directory::{Kind, Location};
use super::{Store, refusal, unreadable};
use crate::connection::Route;
use crate::counters::Counter;
use crate::ports::{Extract, Failure, Outgoing, StoredRecord};
use crate::turn::{SYSTEM_ORG, Turn};

/// Bytes of one answer, at most: a reader that asks for more gets the rest later.
const BYTES_MAX: u32 = 4 << 20;

/// Records of one answer, at most.
const RECORDS_MAX: u32 = 65_536;

/// The tag of every record.
const TAG: u8 = 1;

/// What a reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first offset.
    pub from: u64,
    /// Records, at most.
    pub records_max: u32,
    /// Their bytes, at most; one record comes even if it is larger.
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

/// What went wrong, with what stands in the details.
pub(super) struct Refusal {
    pub(super) code: ErrorCode,
    pub(super) message: String,
    pub(super) details: Option<u64>,
}

impl From<(ErrorCode, String)> for Refusal {
    fn from((code, message): (ErrorCode, String)) -> Self {
        Self {
            code,
            message,
            details: None,
        }
    }
}

impl Turn<'_> {
    /// Records for a stream, all or none; acknowledged once they are on disk.
    pub fn append<'r>(
        &mut self,
        route: u16,
        tag: Ticket,
        expected: Option<u64>,
        records: impl Iterator<Item = &'r [u8]> + Clone,
    ) {
        let size = records.clone().map(<[u8]>::len).sum::<usize>();
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
        let (store, name) = self.stream(route)?;
        let now_ms = self.inner.ports.clock.unix_ms();
        let sizes = || records.clone().map(<[u8]>::len);
        let (count, bytes) = (sizes().count() as u64, sizes().sum::<usize>() as u64);
        let (answer, tickets) = store.append(name, expected, records, now_ms)?;
        self.local.tally.add(Counter::Appends, count);
        self.local.tally.add(Counter::Bytes, bytes);
        Ok(Waiting {
            tag,
            tickets,
            answer,
            slot: None,
        })
    }

    /// Asks for records of a stream that are durable; answered at once.
    pub fn read(&mut self, route: u16, tag: Ticket, range: Range) {
        let read = self.stream(route).and_then(|(store, name)| {
            let location = store.readable(name);
            store.read(location, range)
        });
        match read {
            Ok(read) => self.answer(read.outgoing(tag, false).as_outgoing()),
            Err(refusal) => self.refuse_stream(tag, &refusal),
        }
    }

    /// The store and the stream that a route is bound to.
    pub(super) fn stream(&self, route: u16) -> Result<(&Store, &Name), Refusal> {
        let Some(store) = &self.inner.store else {
            return Err((ErrorCode::Unsupported, "this node keeps nothing".to_owned()).into());
        };
        match self.local.routes.get(usize::from(route).wrapping_sub(1)) {
            Some(Route::Stream { name }) => Ok((store, name)),
            Some(Route::Invalid { reason }) => {
                Err((ErrorCode::InvalidArgument, reason.clone()).into())
            }
            Some(Route::Bound { .. }) => {
                let message = "bind the route with cast `stream`".to_owned();
                Err((ErrorCode::InvalidArgument, message).into())
            }
            None => {
                let message = format!("route {route} is not bound");
                Err((ErrorCode::InvalidArgument, message).into())
            }
        }
    }

    pub(super) fn refuse_stream(&mut self, tag: Ticket, refusal: &Refusal) {
        let details = refusal.details.map(u64::to_le_bytes);
        let failure = Failure {
            details: details.as_ref().map_or(&[], |details| details),
            ..Failure::new(refusal.code, &refusal.message)
        };
        self.fail(tag, failure);
    }
}

/// Whether a name can be a stream's.
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

type Appended = (Answer, [Option<journal::Ticket>; 2]);

impl Store {
    fn append<'r>(
        &self,
        name: &Name,
        expected: Option<u64>,
        records: impl Iterator<Item = &'r [u8]> + Clone,
        now_ms: u64,
    ) -> Result<Appended, Refusal> {
        let refused = |error| Refusal::from(refusal(&self.journal, error));
        let count = records.clone().count();
        if count == 0 {
            let message = "there is nothing to append".to_owned();
            return Err((ErrorCode::InvalidArgument, message).into());
        }
        if expected.is_some_and(|it| it > 0) && self.find(Kind::Raw, name.base()).is_none() {
            // A stream is not made for an append that cannot be.
            return Ok((Answer::Conflict { next: 0 }, [None, None]));
        }
        let location = self
            .find_or_create(Kind::Raw, name.base(), now_ms)
            .map_err(refused)?;
        let creation = self.creation(location.stream);
        let mut guard = self.journal.lock(location.shard, now_ms);
        let size = records.clone().map(<[u8]>::len).sum();
        guard.reserve(count, size).map_err(refused)?;
        let mut first = None;
        let mut last = None;
        let mut expected = expected;
        for record in records {
            match guard.append(location.stream, expected.take(), TAG, record) {
                Ok(appended) => {
                    first.get_or_insert(appended.offset);
                    last = Some(appended);
                }
                Err(AppendError::Conflict { next, ticket }) => {
                    return Ok((Answer::Conflict { next }, [creation, Some(ticket)]));
                }
                Err(error) => return Err(refused(error)),
            }
        }
        let next = last.map_or(0, |last| last.offset + 1);
        let answer = Answer::Appended {
            first: first.unwrap_or(next),
            next,
        };
        Ok((answer, [creation, last.map(|last| last.ticket)]))
    }

    /// The stream of that name, once what it is called is durable.
    pub(super) fn readable(&self, name: &Name) -> Option<Location> {
        let location = self.find(Kind::Raw, name.base())?;
        self.creation(location.stream).is_none().then_some(location)
    }

    pub(super) fn read(&self, location: Option<Location>, range: Range) -> Result<Read, Refusal> {
        let Some(Location { shard, stream }) = location else {
            return Ok(Read(journal::Read {
                records: Vec::new(),
                start: 0,
                next_durable: 0,
            }));
        };
        match self.journal.read(shard, stream, range.from, range.limit()) {
            Ok(read) => Ok(Read(read)),
            Err(ReadError::Trimmed { start }) => Err(Refusal {
                code: ErrorCode::InvalidArgument,
                message: format!("records before offset {start} are not kept any more"),
                details: Some(start),
            }),
            Err(error) => Err(unreadable(&error).into()),
        }
    }
}

/// What was read.
pub(super) struct Read(pub(super) journal::Read);

/// As it goes out.
pub(super) struct Parts<'a> {
    tag: Ticket,
    more: bool,
    start: u64,
    next: u64,
    records: Vec<StoredRecord<'a>>,
}

impl Read {
    pub(super) fn outgoing(&self, tag: Ticket, more: bool) -> Parts<'_> {
        let records = self.0.records.iter().map(|record| StoredRecord {
            offset: record.offset,
            time_ms: record.time_ms,
            bytes: &record.payload,
        });
        Parts {
            tag,
            more,
            start: self.0.start,
            next: self.0.next_durable,
            records: records.collect(),
        }
    }
}

impl Parts<'_> {
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

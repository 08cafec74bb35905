//! Appending messages: decided by the engine and written under one guard.

use std::cell::RefCell;

use bytes::Bytes;
use conversations::record::{self, DraftClose, EventRef, EventTag, Links, MessageView};
use conversations::{Conversation, Decision, Invalid, NewMessage, Place, Plan, Problem};
use conversations::{Original, Status, Update, id_hash};
use journal::{Guard, ReadLimit, Ticket};
use model::{ErrorCode, Name};

use super::due::mark_size;
use super::slot::Room;
use super::unsynced::Unsynced;
use super::{Conversations, Details, Pending, Refusal, check_name};
use crate::counters::Counter;
use crate::handle::Inner;
use crate::store::{Kind, Location, Store, refusal};

/// Messages that are appended at once, all or none.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The number that the newest message must have, unless the whole batch is there already.
    pub expect: Option<u64>,
    /// In order.
    pub messages: &'a [NewMessage<'a>],
}

/// A batch that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The smallest number of a message of the batch.
    pub first_seq: u64,
    /// The largest.
    pub last_seq: u64,
    /// The number of the newest message of the conversation.
    pub head_seq: u64,
    /// How many messages were there already.
    pub deduplicated: usize,
    places: Vec<Place>,
    /// The ids that the node made, in order.
    made: Vec<String>,
}

impl Appended {
    fn new(plan: Plan, made: Vec<String>) -> Self {
        let seqs = || plan.places.iter().map(|place| place.seq());
        Self {
            first_seq: seqs().min().unwrap_or(plan.head),
            last_seq: seqs().max().unwrap_or(plan.head),
            head_seq: plan.head,
            deduplicated: plan.deduplicated(),
            places: plan.places,
            made,
        }
    }

    /// The number of each message of the batch.
    pub fn seqs(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.places.iter().map(|place| place.seq())
    }

    /// The ids of those messages that came without one, in order.
    pub fn made_ids(&self) -> &[String] {
        &self.made
    }
}

/// Where appends go: to the line, which is told of them when the guard is dropped or later.
pub(crate) trait Writer {
    /// Locks a shard.
    fn lock(&self, shard: journal::ShardId, now_ms: u64) -> Guard<'_>;
}

impl Writer for journal::Journal {
    fn lock(&self, shard: journal::ShardId, now_ms: u64) -> Guard<'_> {
        Self::lock(self, shard, now_ms)
    }
}

/// What is read of older messages at a time.
const CHUNK: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

/// Bytes of an event.
const EVENT_SIZE: usize = 16;

/// Bytes of the end of a draft.
const ENDING_SIZE: usize = 17;

/// Encoded records, one behind the other.
#[derive(Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// A thread's scratch gives back what is more than this.
const SCRATCH_MAX: usize = 1 << 20;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Conversations<'_> {
    /// Appends messages; makes the conversation if there is none. Decided at once, told when it is
    /// durable.
    pub fn append(&self, name: &Name, batch: Batch<'_>) -> Result<Pending<Appended>, Refusal> {
        self.append_by(name, batch, &*self.store.journal)
    }

    /// The same of messages that were first appended elsewhere: how each of them ended, and when that
    /// was.
    pub fn import(
        &self,
        name: &Name,
        batch: Batch<'_>,
        originals: &[Original],
    ) -> Result<Pending<Appended>, Refusal> {
        self.append_originals(name, batch, originals, &*self.store.journal)
    }

    pub(crate) fn append_by(
        &self,
        name: &Name,
        batch: Batch<'_>,
        writer: &impl Writer,
    ) -> Result<Pending<Appended>, Refusal> {
        self.append_originals(name, batch, &[], writer)
    }

    fn append_originals(
        &self,
        name: &Name,
        batch: Batch<'_>,
        originals: &[Original],
        writer: &impl Writer,
    ) -> Result<Pending<Appended>, Refusal> {
        check_name(name)?;
        let checked = self.options().limits.check(batch.messages);
        checked.map_err(|invalid| wrong(&invalid))?;
        let (tickets, outcome) = self.with_room(name.base(), |_, room| {
            let appended =
                self.store
                    .append_to_room(self.inner, name.base(), room, &batch, originals, writer);
            let tickets = self.store.tickets(room);
            match appended {
                Err(Failure::AtOnce(refusal)) => Err(refusal),
                Err(Failure::Resting(refusal)) => Ok((tickets, Err(refusal))),
                Ok(appended) => Ok((tickets, Ok(appended))),
            }
        })??;
        self.count(&batch, &outcome);
        Ok(Pending::new(&self.store.journal, tickets, outcome))
    }

    fn count(&self, batch: &Batch<'_>, outcome: &Result<Appended, Refusal>) {
        let counters = &self.inner.counters;
        match outcome {
            Ok(appended) => {
                let (all, known) = (batch.messages.len(), appended.deduplicated);
                counters.add_to(Counter::Messages, (all - known) as u64);
                counters.add_to(Counter::MessageDuplicates, known as u64);
                let sizes = batch.messages.iter();
                let size: usize = sizes.map(|it| it.parts.len() + it.metadata.len()).sum();
                counters.add_to(Counter::Bytes, size as u64);
            }
            Err(refusal) => counters.count_failure(refusal.code),
        }
    }
}

/// Why nothing was appended.
pub(super) enum Failure {
    /// That can be told at once.
    AtOnce(Refusal),
    /// That rests on what was written before.
    Resting(Refusal),
}

impl<R: Into<Refusal>> From<R> for Failure {
    fn from(refusal: R) -> Self {
        Self::AtOnce(refusal.into())
    }
}

/// What ends with a message that was streamed.
#[derive(Clone, Copy)]
pub(super) struct Ending {
    /// The draft.
    pub(super) number: u64,
    pub(super) status: Status,
    /// Somebody asked its author to stop.
    pub(super) is_wanted: bool,
}

/// What is written with messages, under their guard.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) ending: Option<Ending>,
    /// How the read mark of an agent moves that has answered.
    pub(super) mark: Option<Update>,
}

/// What the engine is told of a message that is written.
pub(super) struct Said<'b> {
    pub(super) id: &'b str,
    pub(super) role: &'b str,
    pub(super) tokens: u32,
}

impl Store {
    fn append_to_room(
        &self,
        inner: &Inner,
        name: &str,
        room: &mut Room,
        batch: &Batch<'_>,
        originals: &[Original],
        writer: &impl Writer,
    ) -> Result<Appended, Failure> {
        let plan = self.plan(room, |engine, stored| {
            engine.decide(batch.expect, batch.messages, stored)
        })?;
        if plan.head == room.engine.head() {
            return Ok(Appended::new(plan, Vec::new()));
        }
        self.check_busy(room, batch.messages)?;
        let named = batch.messages.iter();
        let named = named.map(|it| (it.id.unwrap_or_default(), it.from));
        let beside = Beside {
            ending: None,
            mark: self.mark(room, named)?,
        };
        let made = make_ids(inner, batch, &plan);
        let messages = Named {
            batch,
            plan: &plan,
            made: &made,
        };
        let now_ms = inner.ports.clock.unix_ms();
        with_scratch(|scratch| {
            let mut originals = new_ones(originals, &plan);
            for (message, id, _) in messages.iter() {
                let original = originals.next().unwrap_or(Original {
                    status: Status::Complete,
                    at_ms: None,
                });
                scratch.push(message, id, original);
            }
            let location = self.place_room(room, name, now_ms)?;
            let guard = writer.lock(location.shard, now_ms);
            let ticket =
                self.write_with(guard, room, location, messages.said(), scratch, beside)?;
            self.keep_unsynced(room, messages, scratch, ticket);
            Ok::<_, Refusal>(())
        })?;
        Ok(Appended::new(plan, made))
    }

    /// Writes the message that a draft has become, and its end.
    pub(super) fn append_draft(
        &self,
        inner: &Inner,
        name: &str,
        room: &mut Room,
        message: &NewMessage<'_>,
        ending: Ending,
    ) -> Result<Appended, Refusal> {
        let plan = self.plan(room, |engine, stored| engine.decide_draft(message, stored));
        let plan = plan.map_err(|failure| match failure {
            Failure::AtOnce(refusal) | Failure::Resting(refusal) => refusal,
        })?;
        let now_ms = inner.ports.clock.unix_ms();
        let named = std::iter::once((message.id.unwrap_or_default(), message.from));
        let is_whole = matches!(ending.status, Status::Complete | Status::Aborted);
        let beside = Beside {
            mark: match is_whole || ending.is_wanted {
                true => self.mark(room, named)?,
                false => None,
            },
            ending: Some(ending),
        };
        with_scratch(|scratch| {
            let id = message.id.unwrap_or_default();
            let (tokens, _) = message.tokens();
            let said = Said {
                id,
                role: message.role,
                tokens,
            };
            let is_new = plan.head > room.engine.head();
            if is_new {
                let original = Original {
                    status: ending.status,
                    at_ms: None,
                };
                scratch.push(message, id, original);
            }
            let said = is_new.then_some(said).into_iter();
            let location = self.place_room(room, name, now_ms)?;
            let guard = self.journal.lock(location.shard, now_ms);
            self.write_with(guard, room, location, said, scratch, beside)
        })?;
        inner.counters.count(Counter::Messages);
        Ok(Appended::new(plan, Vec::new()))
    }

    /// Asks the engine, and reads for it what it has to know.
    fn plan(
        &self,
        room: &mut Room,
        decide: impl Fn(&Conversation, &dyn Fn(u64) -> Option<Bytes>) -> Decided,
    ) -> Result<Plan, Failure> {
        let mut read: Vec<(u64, Bytes)> = Vec::new();
        loop {
            let stored = |seq| read_for(&room.unsynced, &read, seq);
            let decided = decide(&room.engine, &stored);
            match decided.map_err(|refused| Failure::Resting(refused.into()))? {
                Decision::Append(plan) => return Ok(plan),
                Decision::Read(seqs) => self.read_all(room, seqs, &mut read)?,
                Decision::Learn(range) => self.learn(room, range)?,
            }
        }
    }

    /// Reads messages for the engine.
    pub(super) fn read_all(
        &self,
        room: &Room,
        seqs: Vec<u64>,
        read: &mut Vec<(u64, Bytes)>,
    ) -> Result<(), Refusal> {
        for seq in seqs {
            read.push((seq, self.read_message(room, seq)?));
        }
        Ok(())
    }

    fn read_message(&self, room: &Room, seq: u64) -> Result<Bytes, Refusal> {
        let missing = || Refusal::new(ErrorCode::Internal, format!("message {seq} is not there"));
        let Location { shard, stream } = room.location.ok_or_else(missing)?;
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let offset = room.engine.offset(seq);
        let read = self.journal.read(shard, stream, offset, one)?;
        let record = read.records.into_iter().next().ok_or_else(missing)?;
        Ok(record.payload)
    }

    /// Tells the engine the ids of older messages.
    pub(super) fn learn(
        &self,
        room: &mut Room,
        range: std::ops::Range<u64>,
    ) -> Result<(), Refusal> {
        let mut hashes = Vec::with_capacity((range.end - range.start) as usize);
        let Some(Location { shard, stream }) = room.location else {
            let message = "a conversation that is nowhere has messages";
            return Err(Refusal::new(ErrorCode::Internal, message));
        };
        while range.start + (hashes.len() as u64) < range.end {
            let offset = room.engine.offset(range.start + hashes.len() as u64);
            let read = self.journal.read(shard, stream, offset, CHUNK)?;
            if read.records.is_empty() {
                break;
            }
            for record in &read.records {
                hashes.push(id_hash(MessageView::decode(&record.payload)?.id));
            }
        }
        match room.engine.learn(range.start, &hashes) {
            true => Ok(()),
            false => {
                let message = "the ids of older messages cannot be read";
                Err(Refusal::new(ErrorCode::Internal, message))
            }
        }
    }

    /// Where the conversation is; it is made if it is not.
    pub(super) fn place_room(
        &self,
        room: &mut Room,
        name: &str,
        now_ms: u64,
    ) -> Result<Location, Refusal> {
        let refused = |error| Refusal::from(refusal(&self.journal, error));
        if room.events.is_none() {
            room.events = Some(self.event_partition(name, now_ms).map_err(refused)?);
        }
        if room.location.is_none() {
            let created = self.find_or_create(Kind::Conversation, name, now_ms);
            room.location = Some(created.map_err(refused)?);
        }
        room.location.ok_or_else(|| Refusal::not_found(name))
    }

    /// Writes each message and its event under one guard, and tells the engine.
    pub(super) fn write_all<'b>(
        &self,
        guard: Guard<'_>,
        room: &mut Room,
        location: Location,
        said: impl Iterator<Item = Said<'b>>,
        scratch: &mut Scratch,
        ending: Option<Ending>,
    ) -> Result<Ticket, Refusal> {
        let beside = Beside { ending, mark: None };
        self.write_with(guard, room, location, said, scratch, beside)
    }

    /// The same, and what is beside it.
    fn write_with<'b>(
        &self,
        mut guard: Guard<'_>,
        room: &mut Room,
        location: Location,
        said: impl Iterator<Item = Said<'b>>,
        scratch: &mut Scratch,
        beside: Beside,
    ) -> Result<Ticket, Refusal> {
        let refused = |error| Refusal::from(refusal(&self.journal, error));
        let Location { shard, stream } = location;
        let events = room.events.unwrap_or(stream);
        let count = scratch.ends.len();
        let (mark_size, mark_count) = mark_size(beside.mark.as_ref());
        let size = scratch.bytes.len() + (count + 1) * EVENT_SIZE + ENDING_SIZE + mark_size;
        // The end of a draft, and a mark.
        let records = 2 * count + 2 + mark_count;
        guard.reserve(size, records).map_err(refused)?;
        let mut ticket = guard.last_ticket(stream);
        let mut begin = 0;
        for (said, end) in said.zip(&scratch.ends) {
            let record = &mut scratch.bytes[begin..*end];
            let offset = room.engine.offset(room.engine.head() + 1);
            let event = EventRef {
                conversation: stream.0,
                offset,
            };
            let tag = EventTag::Message as u8;
            let event = guard.append(events, None, tag, &event.encode());
            let links = room.engine.links(event.map_err(refused)?.offset);
            record::set_links(record, links);
            let appended = guard.append(stream, Some(offset), record::MESSAGE, record);
            ticket = appended.map_err(refused)?.ticket;
            room.engine.appended(said.id, said.role, said.tokens);
            begin = *end;
        }
        if let Some(Ending { number, status, .. }) = beside.ending {
            let close = DraftClose {
                draft: number,
                status,
                seq: room.engine.head(),
            };
            let closed = self.rooms.log_close(&mut guard, shard, &close);
            closed.map_err(refused)?;
        }
        if let Some(update) = beside.mark {
            let written = self.write_mark(&mut guard, location, events, &update);
            ticket = written.map_err(refused)?.unwrap_or(ticket);
            room.engine.changed(update);
        }
        room.ticket = Some(ticket);
        self.touch(room);
        Ok(ticket)
    }

    fn keep_unsynced(
        &self,
        room: &mut Room,
        messages: Named<'_>,
        scratch: &Scratch,
        ticket: Ticket,
    ) {
        // Nobody can try a message again of which only the node knows the id.
        if messages.iter().all(|(message, ..)| message.id.is_none()) {
            return;
        }
        let records = messages.iter().map(|(.., seq)| seq).zip(scratch.records());
        room.unsynced.push(records, ticket, |ticket| {
            self.journal.status(ticket) != journal::Status::Pending
        });
    }
}

type Decided = Result<Decision, conversations::Refusal>;

/// The record of a message, if it is at hand.
pub(super) fn read_for(unsynced: &Unsynced, read: &[(u64, Bytes)], seq: u64) -> Option<Bytes> {
    let unsynced = unsynced.get(seq).map(Bytes::copy_from_slice);
    unsynced.or_else(|| Some(read.iter().find(|(it, _)| *it == seq)?.1.clone()))
}

/// Those messages of a batch that are to be appended, each with an id.
#[derive(Clone, Copy)]
struct Named<'b> {
    batch: &'b Batch<'b>,
    plan: &'b Plan,
    made: &'b [String],
}

impl<'b> Named<'b> {
    /// Each message, its id and its number.
    fn iter(self) -> impl Iterator<Item = (&'b NewMessage<'b>, &'b str, u64)> {
        let mut made = self.made.iter().map(String::as_str);
        new_messages(self.batch, self.plan).map(move |(message, seq)| {
            let id = message.id.or_else(|| made.next());
            (message, id.unwrap_or_default(), seq)
        })
    }

    fn said(self) -> impl Iterator<Item = Said<'b>> {
        self.iter().map(|(message, id, _)| Said {
            id,
            role: message.role,
            tokens: message.tokens().0,
        })
    }
}

/// Lends the thread's scratch, empty.
pub(super) fn with_scratch<R>(then: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.bytes.clear();
        scratch.ends.clear();
        let result = then(scratch);
        scratch.bytes.shrink_to(SCRATCH_MAX);
        result
    })
}

impl Scratch {
    /// Encodes another message.
    fn push(&mut self, message: &NewMessage<'_>, id: &str, original: Original) {
        message.encode_original(id, original, Links::default(), &mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Takes another record as it is.
    pub(super) fn push_record(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| &self.bytes[begin..*end])
    }
}

/// Those messages of a batch that are to be appended, with their numbers.
fn new_messages<'b>(
    batch: &'b Batch<'b>,
    plan: &'b Plan,
) -> impl Iterator<Item = (&'b NewMessage<'b>, u64)> {
    let placed = batch.messages.iter().zip(&plan.places);
    placed.filter_map(|(message, place)| match place {
        Place::New(seq) => Some((message, *seq)),
        Place::Known(_) => None,
    })
}

/// Those of the messages that are to be appended.
fn new_ones(originals: &[Original], plan: &Plan) -> impl Iterator<Item = Original> {
    let placed = originals.iter().zip(&plan.places);
    placed.filter_map(|(original, place)| matches!(place, Place::New(_)).then_some(*original))
}

fn make_ids(inner: &Inner, batch: &Batch<'_>, plan: &Plan) -> Vec<String> {
    let nameless = new_messages(batch, plan).filter(|(message, _)| message.id.is_none());
    let entropy = &inner.ports.entropy;
    nameless
        .map(|_| format!("m-{:016x}{:016x}", entropy.next_u64(), entropy.next_u64()))
        .collect()
}

/// What is wrong with a batch, as whoever sent it is told.
pub(super) fn wrong(invalid: &Invalid) -> Refusal {
    let code = match invalid.problem {
        Problem::Messages { .. }
        | Problem::BatchSize { .. }
        | Problem::Size { .. }
        | Problem::Metadata { .. }
        | Problem::Parts { .. } => ErrorCode::TooLarge,
        Problem::Empty | Problem::Id | Problem::Role | Problem::From => ErrorCode::InvalidArgument,
    };
    Refusal::new(code, invalid.to_string()).with(Details {
        index: Some(invalid.index),
        ..Details::default()
    })
}

//! Appends messages: the engine decides, and the messages are written under one guard.

use std::sync::Arc;

use conversations::{MessageSeq, NewMessage, Original, Plan, Status};
use journal::{Round, Ticket};
use model::Name;
use platform::{Counter, Durable};
use smallvec::SmallVec;
use store::{Reach, Store};

use super::history_lookup::{Attempt, MissingHistory, Records};
use super::service::{Moment, check_name};
use super::slot::{Room, Slot};
use super::write::{
    AppendTarget, AppendedMessage, DraftEnd, ExtraRecords, Scratch, Writer, with_scratch,
};
use super::{ConversationError, Conversations, Pending};

/// Messages to append, all or none.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The expected number of the newest message; not checked if the whole batch was appended
    /// before.
    pub expect: Option<u64>,
    /// The messages, in order.
    pub messages: &'a [NewMessage<'a>],
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The lowest number of the batch's messages.
    pub first_seq: u64,
    /// The highest number of the batch's messages.
    pub last_seq: u64,
    /// The number of the conversation's newest message.
    pub head_seq: u64,
    /// The number of messages that had been appended before.
    pub deduplicated: usize,
    places: SmallVec<[MessageSeq; 1]>,
    /// The ids that the node generated, in order.
    made: Vec<String>,
}

impl Batch<'_> {
    /// Returns the size of the messages' content, in bytes.
    pub fn size(&self) -> usize {
        let messages = self.messages.iter();
        messages.map(|it| it.parts.len() + it.metadata.len()).sum()
    }
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

    /// Returns the number of each message of the batch.
    pub fn seqs(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.places.iter().map(|place| place.seq())
    }

    /// Returns the generated ids of the messages that came without one, in order.
    pub fn made_ids(&self) -> &[String] {
        &self.made
    }
}

impl Conversations {
    /// Appends messages, and creates the conversation if it does not exist; acknowledged when
    /// durable. It may read from the disk: do not call it on a thread that serves connections.
    pub fn append(
        &self,
        name: &Name,
        batch: Batch<'_>,
    ) -> Result<Pending<Appended>, ConversationError> {
        self.import(name, batch, &[])
    }

    /// Begins a round of appends, which go to the disk at the latest when it is dropped.
    pub fn round(&self) -> Round {
        self.store.journal.round()
    }

    /// Returns whether a round is one of these conversations.
    pub fn is_round(&self, round: &Round) -> bool {
        round.is_of(&self.store.journal)
    }

    /// Like [`Conversations::append`], decided at once and in a round; `None`, with nothing changed,
    /// if it would have to read from the disk.
    pub fn append_at_once(
        &self,
        round: &Round,
        name: &Name,
        batch: Batch<'_>,
    ) -> Result<Option<Pending<Appended>>, ConversationError> {
        let appended = self.append_in_memory(name, &mut None, batch, round, self.now())?;
        Ok(appended.map(|appended| self.pending(&batch, appended)))
    }

    /// Appends messages that were first appended on another system, with their original status and
    /// time.
    pub fn import(
        &self,
        name: &Name,
        batch: Batch<'_>,
        originals: &[Original],
    ) -> Result<Pending<Appended>, ConversationError> {
        self.check(name, &batch)?;
        let appended = self.with_known(name.base(), |records| {
            let input = AppendInput {
                batch: &batch,
                originals,
                records,
            };
            self.try_append(name, &mut None, input, &*self.store.journal, self.now())
        })?;
        Ok(self.pending(&batch, appended))
    }

    /// Like [`Conversations::append_at_once`]; `known` caches the conversation's slot from the last
    /// call.
    pub(super) fn append_in_memory(
        &self,
        name: &Name,
        known: &mut Option<Arc<Slot>>,
        batch: Batch<'_>,
        writer: &impl Writer,
        now: Moment,
    ) -> Result<Option<DecidedOutcome<Appended>>, ConversationError> {
        self.check(name, &batch)?;
        let input = AppendInput {
            batch: &batch,
            originals: &[],
            records: &mut Records::new(),
        };
        let appended = self.try_append(name, known, input, writer, now)?;
        Ok(appended.done())
    }

    fn check(&self, name: &Name, batch: &Batch<'_>) -> Result<(), ConversationError> {
        check_name(name)?;
        let checked = self.options().limits.check(batch.messages);
        Ok(checked?)
    }

    fn try_append(
        &self,
        name: &Name,
        known: &mut Option<Arc<Slot>>,
        input: AppendInput<'_>,
        writer: &impl Writer,
        now: Moment,
    ) -> Result<Attempt<DecidedOutcome<Appended>>, ConversationError> {
        let done = self.with_room_again(name.base(), known, now.now_ns, |_, room| {
            let appended = self.append_loaded(name.base(), room, input, writer, now.unix_ms);
            (room.ticket, appended)
        })?;
        let Some((ticket, appended)) = done else {
            return Ok(Attempt::Needs(MissingHistory::Room));
        };
        let (ticket, outcome) = match appended {
            Err(Failure::Missing(missing)) => return Ok(Attempt::Needs(missing)),
            Err(Failure::AtOnce(refusal)) => return Err(refusal),
            Err(Failure::Resting(refusal)) => {
                self.platform.counters.count_failure(refusal.code());
                (ticket, Err(refusal))
            }
            Ok(appended) => (ticket, Ok(appended)),
        };
        Ok(Attempt::Done(DecidedOutcome { ticket, outcome }))
    }

    /// Counts the append, and returns its pending acknowledgement.
    fn pending(&self, batch: &Batch<'_>, appended: DecidedOutcome<Appended>) -> Pending<Appended> {
        let counters = &self.platform.counters;
        appended.count(batch, |counter, count| counters.add_to(counter, count));
        appended.into_pending(&self.store)
    }
}

/// An outcome, and the ticket that must be durable before it is sent.
pub(super) struct DecidedOutcome<T> {
    ticket: Option<Ticket>,
    outcome: Result<T, ConversationError>,
}

impl DecidedOutcome<Appended> {
    pub(super) fn new(ticket: Option<Ticket>, appended: Appended) -> Self {
        let outcome = Ok(appended);
        Self { ticket, outcome }
    }

    pub(super) fn into_pending(self, store: &Store) -> Pending<Appended> {
        match &self.outcome {
            // Messages of an earlier append may be stored even if these are not.
            Ok(appended) if appended.deduplicated > 0 => {
                let durable = Durable::of_earlier(&store.journal, [self.ticket, None]);
                Pending::decided_after(durable, self.outcome)
            }
            _ => Pending::new(&store.journal, self.ticket, self.outcome),
        }
    }

    /// Adds the outcome of a batch to the counters.
    pub(super) fn count(&self, batch: &Batch<'_>, mut add: impl FnMut(Counter, u64)) {
        if let Ok(appended) = &self.outcome {
            let (all, known) = (batch.messages.len(), appended.deduplicated);
            add(Counter::Messages, (all - known) as u64);
            add(Counter::MessageDuplicates, known as u64);
            add(Counter::Bytes, batch.size() as u64);
        }
    }
}

/// The reason why nothing was appended.
pub(super) enum Failure {
    /// A refusal that can be sent at once.
    AtOnce(ConversationError),
    /// A refusal that depends on earlier writes: send it when they are durable.
    Resting(ConversationError),
    /// Undecided: data must be read from the disk first.
    Missing(MissingHistory),
}

/// The batch to append, and the data that was read to decide about it.
struct AppendInput<'b> {
    batch: &'b Batch<'b>,
    originals: &'b [Original],
    records: &'b mut Records,
}

impl Failure {
    /// Returns the refusal; the data was within reach of the disk, so nothing is missing.
    fn into_refusal(self) -> ConversationError {
        match self {
            Self::AtOnce(refusal) | Self::Resting(refusal) => refusal,
            Self::Missing(_) => unreachable!("the disk is as far as anything is"),
        }
    }
}

impl<R: Into<ConversationError>> From<R> for Failure {
    fn from(refusal: R) -> Self {
        Self::AtOnce(refusal.into())
    }
}

impl Conversations {
    fn append_loaded(
        &self,
        name: &str,
        room: &mut Room,
        input: AppendInput<'_>,
        writer: &impl Writer,
        now_ms: u64,
    ) -> Result<Appended, Failure> {
        let AppendInput {
            batch,
            originals,
            records,
        } = input;
        let plan = self.plan(Reach::Memory, room, records, |engine, stored| {
            engine.decide(batch.expect, batch.messages, stored)
        })?;
        if plan.head == room.engine.head() {
            return Ok(Appended::new(plan, Vec::new()));
        }
        self.check_busy(room, batch.messages)?;
        let named = batch.messages.iter();
        let named = named.map(|it| (it.id.unwrap_or_default(), it.from));
        let extra = ExtraRecords {
            ending: None,
            mark: self.mark(room, named)?,
        };
        let made = self.make_ids(batch, &plan);
        let messages = NewMessages {
            batch,
            plan: &plan,
            made: &made,
        };
        with_scratch(|scratch| {
            let mut originals = new_ones(originals, &plan);
            for (message, id, _) in messages.iter() {
                let original = originals.next().unwrap_or(Original {
                    status: Status::Complete,
                    at_ms: None,
                });
                scratch.push(message, id, original);
            }
            let target = AppendTarget {
                writer,
                name,
                now_ms,
            };
            let ticket = self.write_with(target, room, messages.said(), scratch, extra)?;
            // A message whose id only the node knows cannot be retried.
            if messages.iter().any(|(message, ..)| message.id.is_some()) {
                self.keep_unsynced(room, messages.iter().map(|(.., seq)| seq), scratch, ticket);
            }
            Ok::<_, ConversationError>(())
        })?;
        Ok(Appended::new(plan, made))
    }
}

impl Conversations {
    /// Writes the message that a draft becomes, and the end of the draft.
    pub(super) fn append_draft(
        &self,
        name: &str,
        room: &mut Room,
        message: &NewMessage<'_>,
        ending: DraftEnd,
    ) -> Result<Appended, ConversationError> {
        // The id was checked when the draft was opened, so this rarely reads from the disk.
        let mut records = Records::new();
        let plan = self.plan(Reach::Disk, room, &mut records, |engine, stored| {
            engine.decide_draft(message, stored)
        });
        let plan = plan.map_err(Failure::into_refusal)?;
        let now_ms = self.platform.unix_ms();
        let named = std::iter::once((message.id.unwrap_or_default(), message.from));
        let is_whole = matches!(ending.status, Status::Complete | Status::Aborted);
        let extra = ExtraRecords {
            mark: match is_whole || ending.is_wanted {
                true => self.mark(room, named)?,
                false => None,
            },
            ending: Some(ending),
        };
        with_scratch(|scratch| {
            let id = message.id.unwrap_or_default();
            let (tokens, _) = message.tokens();
            let said = AppendedMessage {
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
            let target = AppendTarget {
                writer: &*self.store.journal,
                name,
                now_ms,
            };
            let ticket = self.write_with(target, room, said, scratch, extra)?;
            if is_new {
                self.keep_unsynced(room, std::iter::once(plan.head), scratch, ticket);
            }
            Ok::<_, ConversationError>(())
        })?;
        self.platform.counters.count(Counter::Messages);
        Ok(Appended::new(plan, Vec::new()))
    }

    /// Generates ids for the new messages without one.
    fn make_ids(&self, batch: &Batch<'_>, plan: &Plan) -> Vec<String> {
        let nameless = new_messages(batch, plan).filter(|(message, _)| message.id.is_none());
        let entropy = &self.platform.ports.entropy;
        nameless
            .map(|_| format!("m-{:016x}{:016x}", entropy.next_u64(), entropy.next_u64()))
            .collect()
    }

    /// Keeps the records of new messages in memory until they are on disk, for look-ups of their ids.
    fn keep_unsynced(
        &self,
        room: &mut Room,
        seqs: impl Iterator<Item = u64>,
        scratch: &Scratch,
        ticket: Ticket,
    ) {
        let records = seqs.zip(scratch.records());
        room.unsynced.push(records, ticket, |ticket| {
            self.store.journal.status(ticket) != journal::Status::Pending
        });
    }
}

/// The messages of a batch that are new, each with an id.
#[derive(Clone, Copy)]
struct NewMessages<'b> {
    batch: &'b Batch<'b>,
    plan: &'b Plan,
    made: &'b [String],
}

impl<'b> NewMessages<'b> {
    /// Iterates over each message, its id and its number.
    fn iter(self) -> impl Iterator<Item = (&'b NewMessage<'b>, &'b str, u64)> {
        let mut made = self.made.iter().map(String::as_str);
        new_messages(self.batch, self.plan).map(move |(message, seq)| {
            let id = message.id.or_else(|| made.next());
            (message, id.unwrap_or_default(), seq)
        })
    }

    fn said(self) -> impl Iterator<Item = AppendedMessage<'b>> {
        self.iter().map(|(message, id, _)| AppendedMessage {
            id,
            role: message.role,
            tokens: message.tokens().0,
        })
    }
}

/// Returns the new messages of a batch, with their numbers.
fn new_messages<'b>(
    batch: &'b Batch<'b>,
    plan: &'b Plan,
) -> impl Iterator<Item = (&'b NewMessage<'b>, u64)> {
    let placed = batch.messages.iter().zip(&plan.places);
    placed.filter_map(|(message, place)| match place {
        MessageSeq::New(seq) => Some((message, *seq)),
        MessageSeq::Known(_) => None,
    })
}

/// Returns the originals of the new messages.
fn new_ones(originals: &[Original], plan: &Plan) -> impl Iterator<Item = Original> {
    let placed = originals.iter().zip(&plan.places);
    placed.filter_map(|(original, place)| matches!(place, MessageSeq::New(_)).then_some(*original))
}

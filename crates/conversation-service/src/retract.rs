//! Retracts the newest messages: they are hidden at once, and their bytes stay until the
//! conversation is cleared or erased, or until retention removes them.

use conversations::record::{self, EventRef, EventTag, MessageView, Retraction};
use conversations::{Retract, RetractDecision, RetractExtent, RetractPlan, SeqRange};
use journal::{AppendError, Guard, Ticket};
use model::Name;
use platform::Counter;
use store::{AppendSize, Location, Reach, Store};

use super::append::Failure;
use super::history_lookup::{Attempt, Records, read_for};
use super::service::check_name;
use super::slot::Room;
use super::state::{EVENT_SIZE, Event};
use super::view::check_alive;
use super::write::AppendTarget;
use super::{ConversationError, Conversations, Pending};

/// A request to retract the newest messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetractRequest<'a> {
    /// The id of the request, which makes a retry idempotent; `None` if it is not retried.
    pub id: Option<&'a str>,
    /// The required number of the newest message.
    pub expect: u64,
    /// The messages to retract.
    pub extent: RetractExtent,
}

/// The result of a retraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetractOutcome {
    /// The numbers without a message, from the first retracted message to the retraction; `None`
    /// if there was no message to retract.
    pub range: Option<SeqRange>,
    /// The number of retracted messages.
    pub count: u64,
    /// The number of the newest message or retraction.
    pub head_seq: u64,
}

impl RetractOutcome {
    fn new(seq: u64, retraction: Retraction, head_seq: u64) -> Self {
        Self {
            range: Some(SeqRange {
                first: retraction.first_seq,
                last: seq,
            }),
            count: retraction.count,
            head_seq,
        }
    }
}

impl Conversations {
    /// Retracts the newest messages of a conversation; acknowledged when durable. Open drafts become
    /// messages after the retraction. It may read from the disk: do not call it on a thread that
    /// serves connections.
    pub fn retract(
        &self,
        name: &Name,
        request: RetractRequest<'_>,
    ) -> Result<Pending<RetractOutcome>, ConversationError> {
        check_name(name)?;
        let made = request.id.is_none().then(|| {
            let entropy = &self.platform.ports.entropy;
            format!("r-{:016x}{:016x}", entropy.next_u64(), entropy.next_u64())
        });
        let id = request.id.or(made.as_deref()).unwrap_or_default();
        self.with_known(name.base(), |records| {
            self.with_existing(name, |_, room, location| {
                check_alive(room)?;
                let place = self.message_location(room, location);
                let retract = Retract {
                    id,
                    expect: request.expect,
                    extent: request.extent,
                    floor: self.readable_start(&place),
                };
                let done = self.retract_loaded(name, room, &retract, place.head, records);
                let outcome = match done {
                    Err(Failure::Missing(missing)) => return Ok(Attempt::Needs(missing)),
                    Err(Failure::AtOnce(refusal)) => return Err(refusal),
                    Err(Failure::Resting(refusal)) => Err(refusal),
                    Ok(outcome) => Ok(outcome),
                };
                let pending = Pending::new(&self.store.journal, room.ticket, outcome);
                Ok(Attempt::Done(pending))
            })
        })
    }

    /// Retracts messages of a loaded conversation whose newest durable message is `durable`.
    fn retract_loaded(
        &self,
        name: &Name,
        room: &mut Room,
        retract: &Retract<'_>,
        durable: u64,
        records: &mut Records,
    ) -> Result<RetractOutcome, Failure> {
        loop {
            let stored = |seq| read_for(&room.unsynced, records, seq);
            let decided = room.engine.decide_retract(retract, stored);
            match decided.map_err(|refused| Failure::Resting(refused.into()))? {
                RetractDecision::Retract(plan) => {
                    let outcome = RetractOutcome::new(plan.seq, plan.retraction, plan.seq);
                    self.write_retraction(name, room, retract.id, plan)?;
                    self.platform.counters.count(Counter::ConversationChanges);
                    return Ok(outcome);
                }
                RetractDecision::Known { seq, retraction } => {
                    return Ok(RetractOutcome::new(seq, retraction, room.engine.head()));
                }
                RetractDecision::Nothing => {
                    return Ok(RetractOutcome {
                        range: None,
                        count: 0,
                        head_seq: room.engine.head(),
                    });
                }
                // It cannot be read before it is durable.
                RetractDecision::Read(seqs) if seqs.iter().any(|seq| *seq > durable) => {
                    return Err(ConversationError::Contended.into());
                }
                RetractDecision::Read(seqs) => self.look_at(Reach::Memory, room, seqs, records)?,
                RetractDecision::Learn(range) => self.learn(Reach::Memory, room, range)?,
            }
        }
    }

    /// Writes a retraction, the state and their events under one guard, and applies the retraction
    /// to the engine.
    fn write_retraction(
        &self,
        name: &Name,
        room: &mut Room,
        id: &str,
        plan: RetractPlan,
    ) -> Result<(), ConversationError> {
        let mut record = Vec::new();
        MessageView::of_retraction(id, plan.retraction).encode(&mut record);
        let size = AppendSize {
            bytes: record.len() + plan.snapshot().len() + 2 * EVENT_SIZE,
            // The retraction and the snapshot with an event each, and a mark.
            count: 5,
        };
        let target = AppendTarget {
            writer: &*self.store.journal,
            name: name.base(),
            now_ms: self.platform.unix_ms(),
        };
        let (mut guard, location) = self.lock_room(room, target, size)?;
        let ticket = write_records(&mut guard, location, room, &plan, &mut record, size);
        let ticket = ticket.map_err(|error| self.store.append_error(error))?;
        room.said_ms = guard.now_ms();
        drop(guard);
        room.ticket = Some(ticket);
        room.engine.retracted(id, plan);
        self.touch(room);
        Ok(())
    }
}

fn write_records(
    guard: &mut Guard<'_>,
    location: Location,
    room: &Room,
    plan: &RetractPlan,
    record: &mut [u8],
    size: AppendSize,
) -> Result<Ticket, AppendError> {
    let events = room.events.unwrap_or(location.stream);
    let states = Store::companion(location.stream);
    guard.reserve(size.bytes, size.count)?;
    let offset = room.engine.offset(plan.seq);
    let event = EventRef {
        conversation: location.stream.0,
        offset,
    };
    let event = guard.append(events, None, EventTag::Message as u8, &event.encode())?;
    record::set_links(record, plan.links(event.offset));
    guard.append(location.stream, Some(offset), record::MESSAGE, record)?;
    Event::new(guard, location, EventTag::State).append(guard, events)?;
    let appended = guard.append(states, None, record::SNAPSHOT, plan.snapshot())?;
    guard.trim(states, appended.offset)?;
    Ok(appended.ticket)
}

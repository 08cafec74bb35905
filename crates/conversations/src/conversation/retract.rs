//! Retractions: the newest messages are taken back.
//!
//! A retraction has a number of its own, after the messages that it retracts: a reader at any
//! position finds it, and a writer that expects the number before it is refused. Retracted messages
//! stay in the stream, so their ids stay known.
//!
//! Only the newest messages can be retracted. So if a message is there, everything before it that
//! was there when it was appended is there too, except by a clear or by retention.

use std::ops::Range;

use super::Conversation;
use super::change::{self, Update};
use crate::decision::{Lookup, Refusal};
use crate::ids::{MESSAGES_MAX, id_hash};
use crate::limits::is_id;
use crate::record::{Links, MessageView, Retraction};
use crate::retracted::{RANGES_MAX, Retracted, SeqRange};
use crate::state::Lifecycle;

/// A request to retract the newest messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retract<'a> {
    /// The id of the request, which makes a retry idempotent. It is in use like that of a message.
    pub id: &'a str,
    /// The required number of the newest message.
    pub expect: u64,
    /// The messages to retract.
    pub extent: RetractExtent,
    /// The first message that can be read.
    pub floor: u64,
}

/// The messages to retract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetractExtent {
    /// This number of newest messages, or all if they are fewer.
    Newest(u64),
    /// All messages after this number.
    After(u64),
}

/// The decision about a retraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetractDecision {
    /// Append the record of the retraction and the snapshot, then call [`Conversation::retracted`].
    Retract(RetractPlan),
    /// The retraction was made earlier, with this number.
    Known {
        /// The number of the retraction.
        seq: u64,
        /// The retraction.
        retraction: Retraction,
    },
    /// There is no message to retract.
    Nothing,
    /// Read these messages first, as for [`crate::Decision::Read`].
    Read(Vec<u64>),
    /// Learn these ids first, as for [`crate::Decision::Learn`].
    Learn(Range<u64>),
}

/// A retraction to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetractPlan {
    /// The number of the retraction.
    pub seq: u64,
    /// The retraction.
    pub retraction: Retraction,
    update: Update,
    /// Tokens of all earlier messages, retracted or not.
    tokens_before: u64,
    /// The newest instruction that is left; 0 for none.
    instruction: u64,
}

impl RetractPlan {
    /// Returns the snapshot to append to the stream of state.
    pub fn snapshot(&self) -> &[u8] {
        match &self.update {
            Update::Snapshot { bytes, .. } => bytes,
            Update::Nothing | Update::Change { .. } => &[],
        }
    }

    /// Returns the links of the retraction, whose event has the offset `event`.
    pub fn links(&self, event: u64) -> Links {
        Links {
            event,
            tokens_before: self.tokens_before,
            instruction: self.instruction,
        }
    }
}

/// The newest instruction before a retraction.
enum Instruction {
    At(u64),
    /// This message must be read first.
    Unread(u64),
}

impl Conversation {
    /// Decides about a retraction. `stored` returns the record of a message if it is at hand; other
    /// records are requested by the decision.
    pub fn decide_retract<R: AsRef<[u8]>>(
        &self,
        retract: &Retract<'_>,
        mut stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<RetractDecision, Refusal> {
        match self.state.lifecycle {
            Lifecycle::Open | Lifecycle::Archived => {}
            Lifecycle::Copying => return Err(Refusal::Copying),
            Lifecycle::Erased => return Err(Refusal::Gone),
        }
        if !self.exists() {
            return Err(Refusal::Missing);
        }
        if !is_id(retract.id) {
            return Err(Refusal::Id);
        }
        if self.is_streamed(retract.id) {
            return Err(Refusal::IdStreamed { index: 0 });
        }
        match self.look_up(retract.id, &mut stored)? {
            Lookup::At(seq) => return known(retract, seq, stored(seq)),
            Lookup::Read(seqs) => return Ok(RetractDecision::Read(seqs)),
            Lookup::Learn(range) => return Ok(RetractDecision::Learn(range)),
            Lookup::Nowhere => {}
        }
        let (head, expected) = (self.head, retract.expect);
        if expected != head {
            return Err(Refusal::SeqMismatch { head, expected });
        }
        if self.state.lifecycle == Lifecycle::Archived {
            return Err(Refusal::Archived);
        }
        let retracted = &self.state.retracted;
        let floor = retract.floor.max(self.state.cleared_seq() + 1);
        let first = match retract.extent {
            RetractExtent::Newest(count) => retracted.first_of_newest(floor, head, count),
            RetractExtent::After(seq) => {
                let first = retracted.next_live(seq.saturating_add(1).max(floor));
                (first <= head).then_some(first)
            }
        };
        let Some(first) = first else {
            return Ok(RetractDecision::Nothing);
        };
        if head >= MESSAGES_MAX {
            return Err(Refusal::Full);
        }
        match self.instruction_before(first, stored)? {
            Instruction::At(instruction) => {
                let update = self.retraction_update(
                    SeqRange {
                        first,
                        last: head + 1,
                    },
                    floor,
                )?;
                Ok(RetractDecision::Retract(RetractPlan {
                    seq: head + 1,
                    retraction: Retraction {
                        first_seq: first,
                        count: head + 1 - first - retracted.count(first, head),
                    },
                    update,
                    tokens_before: self.tokens,
                    instruction,
                }))
            }
            Instruction::Unread(seq) => Ok(RetractDecision::Read(vec![seq])),
        }
    }

    /// Finds the newest instruction before `first`, along the links of the instructions.
    fn instruction_before<R: AsRef<[u8]>>(
        &self,
        first: u64,
        mut stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Instruction, Refusal> {
        let mut seq = self.instruction;
        while seq >= first {
            if seq < self.start {
                return Ok(Instruction::At(0));
            }
            let Some(record) = stored(seq) else {
                return Ok(Instruction::Unread(seq));
            };
            let damaged = Refusal::Damaged { seq };
            let view = MessageView::decode(record.as_ref()).map_err(|_| damaged)?;
            if view.links.instruction >= seq {
                return Err(damaged);
            }
            seq = view.links.instruction;
        }
        Ok(Instruction::At(seq))
    }

    fn retraction_update(&self, range: SeqRange, floor: u64) -> Result<Update, Refusal> {
        let mut next = self.state.clone();
        next.retracted = next.retracted.with(range, floor);
        if next.retracted.ranges().len() > RANGES_MAX {
            return Err(Refusal::Retractions { max: RANGES_MAX });
        }
        // A summary that covers a retracted message may contain it.
        next.summary = next.summary.filter(|it| it.through_seq < range.first);
        next.version += 1;
        Ok(change::snapshot(next))
    }

    /// Applies a retraction that was appended with that id.
    pub fn retracted(&mut self, id: &str, plan: RetractPlan) {
        let before = self.state.retracted.clone();
        self.head = plan.seq;
        self.instruction = plan.instruction;
        self.ids.push(id_hash(id), self.start);
        self.unsettled.push((plan.seq, before));
        change::apply(self, plan.update);
    }

    /// Returns the retracted numbers for a reader that sees the durable records up to `head`: only
    /// durable retractions count.
    pub fn retracted_at(&mut self, head: u64) -> Retracted {
        self.unsettled.retain(|(seq, _)| *seq > head);
        match self.unsettled.first() {
            Some((_, before)) => before.clone(),
            None => self.state.retracted.clone(),
        }
    }
}

/// Returns the outcome of a request whose id is in use.
fn known<R: AsRef<[u8]>>(
    retract: &Retract<'_>,
    seq: u64,
    record: Option<R>,
) -> Result<RetractDecision, Refusal> {
    let Some(record) = record else {
        return Ok(RetractDecision::Read(vec![seq]));
    };
    let view = MessageView::decode(record.as_ref());
    let view = view.map_err(|_| Refusal::Damaged { seq })?;
    let is_retried = |retraction: &Retraction| {
        let is_extent = match retract.extent {
            RetractExtent::Newest(count) => count >= retraction.count,
            RetractExtent::After(after) => after < retraction.first_seq,
        };
        is_extent && retract.expect + 1 == seq
    };
    match view.retraction.filter(is_retried) {
        Some(retraction) => Ok(RetractDecision::Known { seq, retraction }),
        None => Err(Refusal::IdReused { index: 0, seq }),
    }
}

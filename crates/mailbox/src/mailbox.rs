//! The mailbox.

mod dead;
mod restore;
mod stragglers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{Ids, WriteId};
use crate::record::Note;
use crate::senders::{SenderId, Senders};
use crate::types::{
    Accepted, Again, Answer, Cause, Eligibility, Limits, NewMessage, Offer, Pending, Refused, State,
};

/// Pause before a refused message is delivered again. It is doubled each time, up to the maximum.
const PAUSE_MS: u64 = 1_000;
const PAUSE_MS_MAX: u64 = 60_000;

#[derive(Debug)]
struct Entry<S> {
    size: u32,
    sender: SenderId,
    deliveries: u32,
    /// Number of deliveries before it was revived.
    forgiven: u32,
    /// Offset of the record with its bytes.
    record: u64,
    expires_ms: u64,
    stage: Stage<S>,
}

#[derive(Debug)]
enum Stage<S> {
    /// Not durable yet, or being restored.
    Unsynced,
    /// In its sender's queue, for its first delivery.
    First,
    /// Handed out.
    Unanswered {
        at: S,
        /// The delivery counts as one of its sender's unanswered first deliveries.
        is_first: bool,
    },
    /// Waiting for another delivery.
    Due { due_ms: u64, not_to: Option<S> },
    /// A dead letter; not delivered unless it is revived.
    Dead(Cause),
}

/// A mailbox. `S` is a subscriber.
#[derive(Debug)]
pub struct Mailbox<S> {
    limits: Limits,
    entries: BTreeMap<u64, Entry<S>>,
    bytes: u64,
    ids: Ids,
    /// Ids read back during a restore.
    restored_ids: BTreeMap<u64, Option<WriteId>>,
    /// Messages that are not durable, in order. Removed ones may still be listed.
    unsynced: VecDeque<u64>,
    senders: Senders<S>,
    /// Messages to deliver again, by time.
    due: BTreeSet<(u64, u64)>,
    in_flight: usize,
    dead: usize,
    /// Offsets of rewritten messages, by the offset of their newest record.
    moved: BTreeMap<u64, u64>,
    /// All messages below this offset have been rewritten, and none from it on.
    moved_end: u64,
    /// Lower bound of all expiry times.
    earliest_expiry_ms: u64,
    /// Notes since the last [`Mailbox::take_notes`].
    notes: Vec<Note>,
    expired: u64,
    died: u64,
}

impl<S: Clone + PartialEq> Mailbox<S> {
    /// Creates an empty mailbox.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: BTreeMap::new(),
            bytes: 0,
            ids: Ids::default(),
            restored_ids: BTreeMap::new(),
            unsynced: VecDeque::new(),
            senders: Senders::default(),
            due: BTreeSet::new(),
            in_flight: 0,
            dead: 0,
            moved: BTreeMap::new(),
            moved_end: 0,
            earliest_expiry_ms: u64::MAX,
            notes: Vec::new(),
            expired: 0,
            died: 0,
        }
    }

    /// Decides whether a write may be appended. A duplicate is accepted even if the mailbox is
    /// full.
    pub fn accept(
        &mut self,
        id: Option<WriteId>,
        size: u32,
        now_ms: u64,
    ) -> Result<Accepted, Refused> {
        if let Some(offset) = id.and_then(|id| self.ids.find(id)) {
            return Ok(Accepted::Duplicate { offset });
        }
        let refused = |mailbox: &Self| mailbox.refusal(size);
        match refused(self) {
            None => Ok(Accepted::New),
            Some(_) => {
                // Expired messages make room.
                self.expire(now_ms);
                refused(self).map_or(Ok(Accepted::New), Err)
            }
        }
    }

    fn refusal(&self, size: u32) -> Option<Refused> {
        let Limits {
            messages_max,
            bytes_max,
            ..
        } = self.limits;
        let (messages, bytes) = (self.entries.len(), self.bytes);
        if messages >= messages_max {
            return Some(Refused::Messages { messages });
        }
        (bytes + u64::from(size) > bytes_max).then_some(Refused::Bytes {
            size,
            bytes,
            bytes_max,
        })
    }

    /// Adds a write that was appended. It is delivered once it is durable.
    pub fn written(&mut self, written: NewMessage<'_>) {
        self.ids.push(written.offset, written.id);
        self.insert(written);
        self.unsynced.push_back(written.offset);
    }

    fn insert(&mut self, written: NewMessage<'_>) {
        let NewMessage {
            offset,
            sender,
            size,
            expires_ms,
            ..
        } = written;
        let entry = Entry {
            size,
            sender: self.senders.enter(sender),
            deliveries: 0,
            forgiven: 0,
            record: offset,
            expires_ms,
            stage: Stage::Unsynced,
        };
        self.bytes += u64::from(size);
        self.earliest_expiry_ms = self.earliest_expiry_ms.min(expires_ms);
        self.entries.insert(offset, entry);
    }

    /// Marks all writes below offset `next` as durable.
    pub fn durable(&mut self, next: u64) {
        while let Some(offset) = self.unsynced.front().copied().filter(|it| *it < next) {
            self.unsynced.pop_front();
            if let Some(entry) = self.entries.get_mut(&offset) {
                entry.stage = Stage::First;
                self.senders.wait(entry.sender, offset);
            }
        }
    }

    /// Returns true if a write is not durable yet.
    pub fn is_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Offers messages until no subscriber has room: redeliveries first, then the senders in turn.
    pub fn hand_out(&mut self, now_ms: u64, mut offer: impl FnMut(Offer<'_, S>) -> Answer<S>) {
        if self.hand_out_due(now_ms, &mut offer) {
            self.hand_out_first(now_ms, &mut offer);
        }
    }

    /// Offers due redeliveries. Returns false if no subscriber has room.
    fn hand_out_due(
        &mut self,
        now_ms: u64,
        offer: &mut impl FnMut(Offer<'_, S>) -> Answer<S>,
    ) -> bool {
        while self.in_flight < self.limits.in_flight_max {
            let Some((due_ms, offset)) = self.due.first().copied().filter(|(at, _)| *at <= now_ms)
            else {
                return true;
            };
            let Some(entry) = self.entries.get_mut(&offset) else {
                unreachable!("due messages are in the mailbox");
            };
            if entry.expires_ms <= now_ms {
                self.expire_one(offset);
                continue;
            }
            let place = match &entry.stage {
                Stage::Due {
                    not_to: Some(silent),
                    ..
                } => Eligibility::Other(silent),
                _ => Eligibility::Any,
            };
            let delivery = entry.deliveries.saturating_add(1);
            let answer = offer(Offer {
                offset,
                record: entry.record,
                delivery,
                place,
            });
            let Answer::Handed(at) = answer else {
                return false;
            };
            self.due.remove(&(due_ms, offset));
            self.note_delivery(offset, at, false);
        }
        false
    }

    fn hand_out_first(&mut self, now_ms: u64, offer: &mut impl FnMut(Offer<'_, S>) -> Answer<S>) {
        let mut full = Vec::new();
        while self.in_flight < self.limits.in_flight_max {
            let Some(id) = self.senders.take_turn() else {
                break;
            };
            let Some(sender) = self.senders.get_mut(id) else {
                unreachable!("a sender with a turn has messages");
            };
            let Some(offset) = sender.waiting.front().copied() else {
                unreachable!("a sender with a turn has a waiting message");
            };
            let entry = self.entries.get(&offset);
            let waiting = entry.filter(|entry| matches!(entry.stage, Stage::First));
            let Some(entry) = waiting.filter(|entry| entry.expires_ms > now_ms) else {
                let is_over = waiting.is_some();
                sender.waiting.pop_front();
                self.senders.keep_turn(id);
                if is_over {
                    self.expire_one(offset);
                }
                continue;
            };
            let place = match &sender.at {
                Some(at) if sender.unanswered > 0 => Eligibility::Only(at),
                _ => Eligibility::Any,
            };
            let delivery = entry.deliveries.saturating_add(1);
            let answer = offer(Offer {
                offset,
                record: entry.record,
                delivery,
                place,
            });
            match answer {
                Answer::Handed(at) => {
                    sender.waiting.pop_front();
                    sender.unanswered += 1;
                    sender.at = Some(at.clone());
                    self.senders.end_turn(id);
                    self.note_delivery(offset, at, true);
                }
                Answer::Full => full.push(id),
                Answer::NoSubscriber => {
                    self.senders.keep_turn(id);
                    break;
                }
            }
        }
        for id in full.into_iter().rev() {
            self.senders.keep_turn(id);
        }
    }

    fn note_delivery(&mut self, offset: u64, at: S, is_first: bool) {
        let Some(entry) = self.entries.get_mut(&offset) else {
            return;
        };
        entry.deliveries = entry.deliveries.saturating_add(1);
        entry.stage = Stage::Unanswered { at, is_first };
        self.in_flight += 1;
        self.notes.push(Note::Handed {
            offset,
            deliveries: entry.deliveries,
        });
    }

    /// Removes a message that was acknowledged, or by hand. Returns false if it is not there.
    pub fn acknowledge(&mut self, offset: u64) -> bool {
        self.remove(offset)
    }

    /// Schedules another delivery of an unanswered message, or makes it a dead letter. Returns
    /// false if it is not in delivery.
    pub fn again(&mut self, offset: u64, again: Again, now_ms: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&offset) else {
            return false;
        };
        let Stage::Unanswered { .. } = entry.stage else {
            return false;
        };
        if entry.expires_ms <= now_ms {
            self.expire_one(offset);
            return true;
        }
        if self.is_spent(offset) {
            let cause = match again {
                Again::Now => Cause::Unanswered,
                Again::Later | Again::After { .. } => Cause::Refused,
            };
            self.make_dead(offset, cause);
            return true;
        }
        self.schedule_again(offset, again, now_ms);
        true
    }

    fn schedule_again(&mut self, offset: u64, again: Again, now_ms: u64) {
        let Some(entry) = self.entries.get_mut(&offset) else {
            return;
        };
        let pause_ms = match again {
            Again::Now => 0,
            Again::Later => pause_ms(entry.deliveries),
            Again::After { pause_ms } => pause_ms,
        };
        let due_ms = now_ms.saturating_add(pause_ms);
        let stage = Stage::Due {
            due_ms,
            not_to: None,
        };
        let before = std::mem::replace(&mut entry.stage, stage);
        let sender = entry.sender;
        self.end_delivery(sender, &before);
        if let Stage::Unanswered { at, .. } = before
            && again == Again::Now
            && let Some(entry) = self.entries.get_mut(&offset)
        {
            entry.stage = Stage::Due {
                due_ms,
                not_to: Some(at),
            };
        }
        self.due.insert((due_ms, offset));
    }

    /// Removes expired messages that are not in delivery.
    pub fn expire(&mut self, now_ms: u64) {
        if self.earliest_expiry_ms > now_ms {
            return;
        }
        let mut over = Vec::new();
        let mut earliest_ms = u64::MAX;
        for (offset, entry) in &self.entries {
            let is_out = matches!(entry.stage, Stage::Unanswered { .. } | Stage::Unsynced);
            if entry.expires_ms <= now_ms && !is_out {
                over.push(*offset);
            } else if !is_out {
                earliest_ms = earliest_ms.min(entry.expires_ms);
            } else {
                // Checked again when its answer arrives.
                earliest_ms = earliest_ms.min(entry.expires_ms.max(now_ms + 1));
            }
        }
        self.earliest_expiry_ms = earliest_ms;
        for offset in over {
            self.expire_one(offset);
        }
    }

    /// Returns a lower bound of the next expiry time; the maximum if there is none.
    pub fn earliest_expiry_ms(&self) -> u64 {
        self.earliest_expiry_ms
    }

    fn expire_one(&mut self, offset: u64) {
        if self.remove(offset) {
            self.expired += 1;
        }
    }

    /// Removes the messages in the selected states and returns their number.
    pub fn purge(&mut self, is_meant: impl Fn(State) -> bool) -> usize {
        let meant = self.pending(0).filter(|it| is_meant(it.state));
        let offsets: Vec<_> = meant.map(|it| it.offset).collect();
        for offset in &offsets {
            self.remove(*offset);
        }
        offsets.len()
    }

    fn remove(&mut self, offset: u64) -> bool {
        let Some(entry) = self.entries.remove(&offset) else {
            return false;
        };
        self.bytes -= u64::from(entry.size);
        self.end_delivery(entry.sender, &entry.stage);
        if let Stage::Due { due_ms, .. } = entry.stage {
            self.due.remove(&(due_ms, offset));
        }
        if let Stage::Dead(_) = entry.stage {
            self.dead -= 1;
        }
        self.moved.remove(&entry.record);
        self.senders.leave(entry.sender);
        self.notes.push(Note::Left { offset });
        true
    }

    /// Ends a delivery.
    fn end_delivery(&mut self, sender: SenderId, stage: &Stage<S>) {
        let Stage::Unanswered { is_first, .. } = stage else {
            return;
        };
        self.in_flight -= 1;
        if *is_first && let Some(sender) = self.senders.get_mut(sender) {
            sender.unanswered -= 1;
            if sender.unanswered == 0 {
                sender.at = None;
            }
        }
    }

    /// Returns and clears the notes, which must be appended to the mailbox's stream.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Returns and clears the number of expired messages.
    pub fn take_expired(&mut self) -> u64 {
        std::mem::take(&mut self.expired)
    }

    /// Returns the number of unacknowledged messages, including dead letters.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of unacknowledged messages without dead letters.
    pub fn live(&self) -> usize {
        self.entries.len() - self.dead
    }

    /// Returns true if the mailbox is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of all messages.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of delivered, unanswered messages.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns when the next redelivery is due, if there is one.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// Iterates over the unacknowledged messages from an offset on, in order.
    pub fn pending(&self, from: u64) -> impl Iterator<Item = Pending<'_>> + '_ {
        self.entries.range(from..).map(|(offset, entry)| Pending {
            offset: *offset,
            record: entry.record,
            sender: self.senders.name(entry.sender),
            deliveries: entry.deliveries,
            expires_ms: entry.expires_ms,
            state: match &entry.stage {
                Stage::Unsynced => State::Unsynced,
                Stage::First => State::Waiting,
                Stage::Unanswered { .. } => State::Unanswered,
                Stage::Due { due_ms: 0, .. } => State::Waiting,
                Stage::Due { due_ms, .. } => State::Paused { until_ms: *due_ms },
                Stage::Dead(cause) => State::Dead(*cause),
            },
        })
    }

    /// Iterates over the ids to store when their writes are trimmed, oldest first.
    pub fn ids(&self) -> impl Iterator<Item = (u64, Option<WriteId>)> + '_ {
        self.ids.iter()
    }
}

/// Returns the pause before the next delivery, after that many deliveries.
fn pause_ms(deliveries: u32) -> u64 {
    let doublings = deliveries.saturating_sub(1).min(16);
    (PAUSE_MS << doublings).min(PAUSE_MS_MAX)
}

#[cfg(test)]
mod tests;

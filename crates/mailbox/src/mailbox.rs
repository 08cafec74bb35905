//! One mailbox.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{IDS_KEPT, Ids, WriteId};
use crate::record::Note;
use crate::senders::{SenderId, Senders};

/// Pause before a message that was refused is handed out again: doubled each time up to the
/// longest.
const PAUSE_MS: u64 = 1_000;
const PAUSE_MS_MAX: u64 = 60_000;

/// What a mailbox holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Unacknowledged messages.
    pub messages_max: usize,
    /// Their bytes, as the shell counts them.
    pub bytes_max: u64,
    /// Messages that are handed out at the same time.
    pub in_flight_max: usize,
}

/// A message that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written<'a> {
    /// Where; above every earlier one.
    pub offset: u64,
    /// What the writer calls it.
    pub id: Option<WriteId>,
    /// Who wrote it.
    pub sender: &'a str,
    /// Its size against the limit.
    pub size: u32,
    /// When it is given up.
    pub expires_ms: u64,
}

/// A write may go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Append it, and say [`Mailbox::written`].
    New,
    /// It is there already, or was.
    Duplicate {
        /// The offset of the original.
        offset: u64,
    },
}

/// A write may not go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There are too many messages.
    #[error("the mailbox holds {messages} unacknowledged messages, its limit")]
    Messages {
        /// As many.
        messages: usize,
    },
    /// They are too large together.
    #[error("{size} more bytes do not fit into the mailbox: {bytes} of {bytes_max} are taken")]
    Bytes {
        /// What was to be written.
        size: u32,
        /// What is there.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
}

/// A message that is to be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a, S> {
    /// Which one.
    pub offset: u64,
    /// How often it is handed out with this time.
    pub delivery: u32,
    /// To whom.
    pub place: Place<'a, S>,
}

/// Who may get a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a, S> {
    /// Anybody.
    Any,
    /// Nobody but this one: an earlier message of the same sender is with it.
    Only(&'a S),
    /// Somebody else than this one, if there is: it has not answered.
    Other(&'a S),
}

/// What became of an [`Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<S> {
    /// It was handed to this one, who will answer, fail or be lost.
    Handed(S),
    /// The only one who may get it has no room.
    Full,
    /// Nobody has room, or nobody is there, or the message cannot be read now.
    Nobody,
}

/// When a message that was not acknowledged is handed out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// At once: whoever had it is gone or silent.
    Now,
    /// Later, with a pause that grows: it was refused.
    Later,
    /// After this long: whoever refused it said so.
    After {
        /// Milliseconds.
        pause_ms: u64,
    },
}

/// A message of the mailbox, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending<'a> {
    /// Which one.
    pub offset: u64,
    /// Who wrote it.
    pub sender: &'a str,
    /// How often it was handed out.
    pub deliveries: u32,
    /// When it is given up.
    pub expires_ms: u64,
    /// What it waits for.
    pub state: State,
}

/// What a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// To be on disk.
    Unsynced,
    /// Somebody with room for it.
    Waiting,
    /// The answer of whom it was handed to.
    Unanswered,
    /// The end of a pause.
    Paused {
        /// When that is.
        until_ms: u64,
    },
}

#[derive(Debug)]
struct Entry<S> {
    size: u32,
    sender: SenderId,
    deliveries: u32,
    expires_ms: u64,
    stage: Stage<S>,
}

#[derive(Debug)]
enum Stage<S> {
    /// Not durable yet, or being restored.
    Unsynced,
    /// In its sender's queue.
    First,
    /// Handed out.
    Unanswered {
        at: S,
        /// It counts among its sender's first deliveries.
        is_first: bool,
    },
    /// In the queue of those that go out again.
    Due { due_ms: u64, not_to: Option<S> },
}

/// See the crate's documentation. `S` is a subscriber.
#[derive(Debug)]
pub struct Mailbox<S> {
    limits: Limits,
    entries: BTreeMap<u64, Entry<S>>,
    bytes: u64,
    ids: Ids,
    /// Ids that were read back.
    restored_ids: BTreeMap<u64, Option<WriteId>>,
    /// Messages that are not durable, in order; one that has left may still stand here.
    unsynced: VecDeque<u64>,
    senders: Senders<S>,
    /// Messages that go out again, by time.
    due: BTreeSet<(u64, u64)>,
    in_flight: usize,
    /// No message expires before this.
    earliest_expiry_ms: u64,
    /// What happened since the notes were taken.
    notes: Vec<Note>,
    expired: u64,
}

impl<S: Clone + PartialEq> Mailbox<S> {
    /// An empty one.
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
            earliest_expiry_ms: u64::MAX,
            notes: Vec::new(),
            expired: 0,
        }
    }

    /// Whether a write of that id and size may go in. A duplicate may even if there is no room.
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
                // What is over makes room.
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

    /// A write was appended; it goes out once it is durable.
    pub fn written(&mut self, written: Written<'_>) {
        self.ids.push(written.offset, written.id);
        self.insert(written);
        self.unsynced.push_back(written.offset);
    }

    fn insert(&mut self, written: Written<'_>) {
        let Written {
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
            expires_ms,
            stage: Stage::Unsynced,
        };
        self.bytes += u64::from(size);
        self.earliest_expiry_ms = self.earliest_expiry_ms.min(expires_ms);
        self.entries.insert(offset, entry);
    }

    /// Everything below `next` is durable.
    pub fn durable(&mut self, next: u64) {
        while let Some(offset) = self.unsynced.front().copied().filter(|it| *it < next) {
            self.unsynced.pop_front();
            if let Some(entry) = self.entries.get_mut(&offset) {
                entry.stage = Stage::First;
                self.senders.wait(entry.sender, offset);
            }
        }
    }

    /// Whether something waits to become durable.
    pub fn is_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Offers what may go out, until nobody has room: what goes out again first, then the senders
    /// in turn.
    pub fn hand_out(&mut self, now_ms: u64, mut offer: impl FnMut(Offer<'_, S>) -> Answer<S>) {
        if self.hand_out_due(now_ms, &mut offer) {
            self.hand_out_first(now_ms, &mut offer);
        }
    }

    /// False when nobody has room.
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
                unreachable!("what goes out again is in the mailbox");
            };
            if entry.expires_ms <= now_ms {
                self.expire_one(offset);
                continue;
            }
            let place = match &entry.stage {
                Stage::Due {
                    not_to: Some(silent),
                    ..
                } => Place::Other(silent),
                _ => Place::Any,
            };
            let delivery = entry.deliveries.saturating_add(1);
            let answer = offer(Offer {
                offset,
                delivery,
                place,
            });
            let Answer::Handed(at) = answer else {
                return false;
            };
            self.due.remove(&(due_ms, offset));
            self.handed(offset, at, false);
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
                unreachable!("whose turn it is has messages");
            };
            let Some(offset) = sender.waiting.front().copied() else {
                unreachable!("whose turn it is has something that waits");
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
                Some(at) if sender.unanswered > 0 => Place::Only(at),
                _ => Place::Any,
            };
            let delivery = entry.deliveries.saturating_add(1);
            let answer = offer(Offer {
                offset,
                delivery,
                place,
            });
            match answer {
                Answer::Handed(at) => {
                    sender.waiting.pop_front();
                    sender.unanswered += 1;
                    sender.at = Some(at.clone());
                    self.senders.end_turn(id);
                    self.handed(offset, at, true);
                }
                Answer::Full => full.push(id),
                Answer::Nobody => {
                    self.senders.keep_turn(id);
                    break;
                }
            }
        }
        for id in full.into_iter().rev() {
            self.senders.keep_turn(id);
        }
    }

    fn handed(&mut self, offset: u64, at: S, is_first: bool) {
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

    /// A message was acknowledged, or is removed by hand. False when it is not there any more.
    pub fn acknowledge(&mut self, offset: u64) -> bool {
        self.remove(offset)
    }

    /// Whom a message was handed to has not acknowledged it. False when it is not out there any
    /// more.
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
        self.answered(sender, &before);
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
        true
    }

    /// Forgets what has expired and is not being handled.
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
                // Looked at when its answer is there; until then there is nothing to do.
                earliest_ms = earliest_ms.min(entry.expires_ms.max(now_ms + 1));
            }
        }
        self.earliest_expiry_ms = earliest_ms;
        for offset in over {
            self.expire_one(offset);
        }
    }

    fn expire_one(&mut self, offset: u64) {
        if self.remove(offset) {
            self.expired += 1;
        }
    }

    /// Removes everything and says how much that was.
    pub fn purge(&mut self) -> usize {
        let offsets: Vec<_> = self.entries.keys().copied().collect();
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
        self.answered(entry.sender, &entry.stage);
        if let Stage::Due { due_ms, .. } = entry.stage {
            self.due.remove(&(due_ms, offset));
        }
        self.senders.leave(entry.sender);
        self.notes.push(Note::Left { offset });
        true
    }

    /// What was handed out is not out there any more.
    fn answered(&mut self, sender: SenderId, stage: &Stage<S>) {
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

    /// What happened since the last time, to be appended to the mailbox's stream.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Messages that have expired since the last time.
    pub fn take_expired(&mut self) -> u64 {
        std::mem::take(&mut self.expired)
    }

    /// The oldest message that is still needed, if there is any.
    pub fn oldest(&self) -> Option<u64> {
        self.entries.keys().next().copied()
    }

    /// Unacknowledged messages.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Messages that are handed out and unanswered.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// When the next message goes out again, if any waits for that.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// The unacknowledged messages from an offset on, in order.
    pub fn pending(&self, from: u64) -> impl Iterator<Item = Pending<'_>> + '_ {
        self.entries.range(from..).map(|(offset, entry)| Pending {
            offset: *offset,
            sender: self.senders.name(entry.sender),
            deliveries: entry.deliveries,
            expires_ms: entry.expires_ms,
            state: match &entry.stage {
                Stage::Unsynced => State::Unsynced,
                Stage::First => State::Waiting,
                Stage::Unanswered { .. } => State::Unanswered,
                Stage::Due { due_ms: 0, .. } => State::Waiting,
                Stage::Due { due_ms, .. } => State::Paused { until_ms: *due_ms },
            },
        })
    }

    /// The ids to keep when the writes themselves are forgotten, oldest first.
    pub fn ids(&self) -> impl Iterator<Item = (u64, Option<WriteId>)> + '_ {
        self.ids.iter()
    }

    /// Reads a write back. Records are restored in the order of the stream, before anything else,
    /// and then [`Mailbox::restored`].
    pub fn restore(&mut self, written: Written<'_>) {
        self.restore_id(written.offset, written.id);
        self.insert(written);
    }

    /// Reads a note back; one about a message that was forgotten says nothing.
    pub fn restore_note(&mut self, note: Note) {
        match note {
            Note::Handed { offset, deliveries } => {
                if let Some(entry) = self.entries.get_mut(&offset) {
                    entry.deliveries = deliveries;
                }
            }
            Note::Left { offset } => {
                self.remove(offset);
            }
        }
    }

    /// Reads an id back.
    pub fn restore_id(&mut self, offset: u64, id: Option<WriteId>) {
        self.restored_ids.insert(offset, id);
        if self.restored_ids.len() > IDS_KEPT {
            self.restored_ids.pop_first();
        }
    }

    /// Everything was read back: what was handed out before goes out again, the rest in order.
    pub fn restored(&mut self) {
        self.notes.clear();
        self.ids.merge(std::mem::take(&mut self.restored_ids));
        for (offset, entry) in &mut self.entries {
            if entry.deliveries == 0 {
                entry.stage = Stage::First;
                self.senders.wait(entry.sender, *offset);
            } else {
                entry.stage = Stage::Due {
                    due_ms: 0,
                    not_to: None,
                };
                self.due.insert((0, *offset));
            }
        }
    }
}

/// The pause before the next delivery, after that many.
fn pause_ms(deliveries: u32) -> u64 {
    let doublings = deliveries.saturating_sub(1).min(16);
    (PAUSE_MS << doublings).min(PAUSE_MS_MAX)
}

#[cfg(test)]
mod tests;

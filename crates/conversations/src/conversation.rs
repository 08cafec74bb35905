//! One conversation while it is used.

use std::ops::Range;

use crate::ids::{Ids, MESSAGES_MAX, id_hash};
use crate::message::NewMessage;
use crate::record::{MessageView, StateChange};
use crate::state::{Change, Lifecycle, State};

mod change;

pub use change::Update;

/// See the crate's documentation. Everything here is decided under one lock, together with the
/// appending: what is decided is what the streams will say.
#[derive(Debug)]
pub struct Conversation {
    /// The first message that is kept.
    start: u64,
    /// The newest message; 0 for none.
    head: u64,
    ids: Ids,
    state: State,
    /// Changes since the last snapshot.
    changes: u32,
}

/// What is to be done with a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Append the new messages, in order, and say [`Conversation::appended`] of each.
    Append(Plan),
    /// Read these messages, then ask again: their ids may be those of the batch.
    Read(Vec<u64>),
    /// Read the ids of these messages, say [`Conversation::learn`], then ask again. The range may be
    /// learned in pieces, from its end on.
    Learn(Range<u64>),
}

/// Where each message of a batch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One for each message, in order.
    pub places: Vec<Place>,
    /// The newest message when the batch is appended.
    pub head: u64,
}

impl Plan {
    /// How many were there already.
    pub fn deduplicated(&self) -> usize {
        let places = self.places.iter();
        places
            .filter(|place| matches!(place, Place::Known(_)))
            .count()
    }
}

/// Where a message of a batch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is to be appended with that number.
    New(u64),
    /// It has that number already, or an equal one before it in the batch will.
    Known(u64),
}

impl Place {
    /// Its number.
    pub fn seq(self) -> u64 {
        match self {
            Self::New(seq) | Self::Known(seq) => seq,
        }
    }
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The newest message is another than was expected.
    #[error("the newest message is {head}, not {expected}")]
    SeqMismatch {
        /// The newest message.
        head: u64,
        /// What was expected.
        expected: u64,
    },
    /// The state is another than was expected.
    #[error("the version is {version}, not {expected}")]
    VersionMismatch {
        /// Which it is.
        version: u64,
        /// What was expected.
        expected: u64,
    },
    /// The id is that of another message.
    #[error(
        "message {index} has the id of message {seq} of the conversation, which says something else"
    )]
    IdReused {
        /// Which message of the batch, from 0.
        index: usize,
        /// Whose id it is.
        seq: u64,
    },
    /// It takes no messages.
    #[error("the conversation is archived")]
    Archived,
    /// It is not complete yet.
    #[error("the conversation is being copied")]
    Copying,
    /// It was there and will never be again.
    #[error("the conversation was erased")]
    Gone,
    /// There is one of that name.
    #[error("the conversation exists")]
    Exists,
    /// There is no such message.
    #[error("the newest message is {head}")]
    BeyondHead {
        /// The newest message.
        head: u64,
    },
    /// Too many participants have cursors.
    #[error("{max} participants have cursors, the limit")]
    Cursors {
        /// The limit.
        max: usize,
    },
    /// The change is larger than it may be.
    #[error("{what} of {size} bytes: the limit is {max}")]
    Size {
        /// What.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// That is no name of a participant.
    #[error("a participant has 1 to 256 bytes and no control characters")]
    Who,
    /// There is no room for as many messages, ever.
    #[error("a conversation has at most {MESSAGES_MAX} messages")]
    Full,
    /// A record that is kept cannot be read.
    #[error("message {seq} is damaged")]
    Damaged {
        /// Which one.
        seq: u64,
    },
}

impl Conversation {
    /// One whose streams say: its state, and the offsets of the first record of its messages that is
    /// kept and of the next one. Then [`Conversation::restore_change`] for each change behind the snapshot.
    pub fn load(state: State, first_offset: u64, next_offset: u64) -> Self {
        let head = next_offset.saturating_sub(state.base);
        let start = (first_offset + 1).saturating_sub(state.base).max(1);
        Self {
            start,
            head,
            ids: Ids::new(head + 1),
            state,
            changes: 0,
        }
    }

    /// The newest message; 0 for none.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The first message that is kept; above the head if none is.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Everything besides the messages.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether there is anything: a message that was appended, or state.
    pub fn exists(&self) -> bool {
        self.head > 0 || self.state.version > 0
    }

    /// Where a message is in the stream.
    pub fn offset(&self, seq: u64) -> u64 {
        seq - 1 + self.state.base
    }

    /// What number the message at an offset has.
    pub fn seq(&self, offset: u64) -> u64 {
        offset + 1 - self.state.base
    }

    /// Bytes of memory that its ids take.
    pub fn ids_size(&self) -> usize {
        self.ids.memory_size()
    }

    /// Decides about a batch that [`crate::Limits::check`] let in. `expect` is what the newest
    /// message has to be, unless the whole batch is there already. `stored` gives the record of a
    /// message if it is at hand; what it does not have is asked for.
    pub fn decide<R: AsRef<[u8]>>(
        &self,
        expect: Option<u64>,
        batch: &[NewMessage<'_>],
        stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Decision, Refusal> {
        let plan = match self.place(batch, stored)? {
            Decision::Append(plan) => plan,
            unknown => return Ok(unknown),
        };
        let is_new = plan.head > self.head;
        match expect {
            Some(expected) if is_new && expected != self.head => Err(Refusal::SeqMismatch {
                head: self.head,
                expected,
            }),
            _ if is_new && self.state.lifecycle == Lifecycle::Archived => Err(Refusal::Archived),
            _ => Ok(Decision::Append(plan)),
        }
    }

    /// Decides about the message that a draft has become; that the conversation was archived
    /// meanwhile does not matter.
    pub fn decide_draft<R: AsRef<[u8]>>(
        &self,
        message: &NewMessage<'_>,
        stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Decision, Refusal> {
        self.place(std::slice::from_ref(message), stored)
    }

    fn place<R: AsRef<[u8]>>(
        &self,
        batch: &[NewMessage<'_>],
        mut stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Decision, Refusal> {
        match self.state.lifecycle {
            Lifecycle::Open | Lifecycle::Archived => {}
            Lifecycle::Copying => return Err(Refusal::Copying),
            Lifecycle::Erased => return Err(Refusal::Gone),
        }
        let mut places: Vec<Place> = Vec::with_capacity(batch.len());
        let mut head = self.head;
        let mut unread = Vec::new();
        let mut is_unknown = false;
        for (index, message) in batch.iter().enumerate() {
            let place = match self.find(index, message, &mut stored, &mut unread)? {
                Found::At(seq) => Some(Place::Known(seq)),
                Found::Nowhere => earlier(batch, &places, index)?,
                Found::Unknown => {
                    is_unknown = true;
                    None
                }
            };
            places.push(place.unwrap_or_else(|| {
                head += 1;
                Place::New(head)
            }));
        }
        if !unread.is_empty() {
            unread.sort_unstable();
            unread.dedup();
            Ok(Decision::Read(unread))
        } else if is_unknown {
            Ok(Decision::Learn(self.start..self.ids.first()))
        } else if head > MESSAGES_MAX {
            Err(Refusal::Full)
        } else {
            Ok(Decision::Append(Plan { places, head }))
        }
    }

    /// Looks for a message among those that are kept.
    fn find<R: AsRef<[u8]>>(
        &self,
        index: usize,
        message: &NewMessage<'_>,
        stored: &mut impl FnMut(u64) -> Option<R>,
        unread: &mut Vec<u64>,
    ) -> Result<Found, Refusal> {
        let Some(id) = message.id else {
            return Ok(Found::Nowhere);
        };
        let mut is_read = true;
        for seq in self.ids.find(id_hash(id)) {
            let Some(record) = stored(seq) else {
                unread.push(seq);
                is_read = false;
                continue;
            };
            let view = MessageView::decode(record.as_ref());
            let view = view.map_err(|_| Refusal::Damaged { seq })?;
            if view.is_retried_by(message) {
                return Ok(Found::At(seq));
            } else if view.id == id {
                return Err(Refusal::IdReused { index, seq });
            }
        }
        let is_known = is_read && self.ids.first() <= self.start;
        Ok(if is_known {
            Found::Nowhere
        } else {
            Found::Unknown
        })
    }

    /// A message was appended under that id, as the next one.
    pub fn appended(&mut self, id: &str) {
        self.head += 1;
        self.ids.push(id_hash(id), self.start);
    }

    /// The messages from `from` on have ids of these hashes ([`id_hash`]). False when that does not
    /// adjoin what is known already.
    pub fn learn(&mut self, from: u64, hashes: &[u64]) -> bool {
        self.ids.learn(from, hashes)
    }

    /// Gives back the memory of the ids of older messages.
    pub fn forget_older_ids(&mut self) {
        self.ids.forget_older();
    }

    /// Messages before `start` are not kept any more.
    pub fn trimmed(&mut self, start: u64) {
        self.start = self.start.max(start);
        self.ids.trim(self.start);
    }

    /// Reads a change back, in the order of the stream.
    pub fn restore_change(&mut self, change: &StateChange<'_>) {
        let StateChange::Cursor { who, seq } = change;
        self.state.cursors.set(who, *seq);
        self.changes += 1;
    }

    /// Decides about a change of the state, of the version that is expected. What is to be appended
    /// to the stream of state is in it; then say [`Conversation::changed`].
    pub fn decide_change(
        &self,
        expect: Option<u64>,
        change: &Change,
        limits: &crate::Limits,
        now_ms: u64,
    ) -> Result<Update, Refusal> {
        change::decide(self, expect, change, limits, now_ms)
    }

    /// An update was appended.
    pub fn changed(&mut self, update: Update) {
        change::apply(self, update);
    }
}

/// Where a message is that may have been appended before.
enum Found {
    At(u64),
    Nowhere,
    /// That needs more to be read.
    Unknown,
}

/// Looks for a message among those before it in its batch.
fn earlier(
    batch: &[NewMessage<'_>],
    places: &[Place],
    index: usize,
) -> Result<Option<Place>, Refusal> {
    let message = &batch[index];
    let same = |it: &&NewMessage<'_>| it.id.is_some() && it.id == message.id;
    let Some((other, place)) = batch.iter().zip(places).find(|(it, _)| same(it)) else {
        return Ok(None);
    };
    let is_equal = (other.role, other.from) == (message.role, message.from)
        && (other.parts, other.metadata) == (message.parts, message.metadata);
    let seq = place.seq();
    match is_equal {
        true => Ok(Some(Place::Known(seq))),
        false => Err(Refusal::IdReused { index, seq }),
    }
}

#[cfg(test)]
mod tests;

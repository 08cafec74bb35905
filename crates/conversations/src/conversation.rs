//! One conversation while it is used.

mod change;
mod find;

use crate::context::{Bounds, Policy, SummaryFact, Window, WindowError};
use crate::decision::{Decision, Lookup, Refusal};
use crate::ids::{Ids, id_hash};
use crate::limits::Limits;
use crate::message::{NewMessage, is_instructing};
use crate::record::{Links, MessageView, StateChange};
use crate::state::{Change, Lifecycle, State};

pub use change::Update;

/// See the crate's documentation. Everything here is decided under one lock, together with the
/// appending: what is decided is what the streams will say.
#[derive(Debug)]
pub struct Conversation {
    /// The first message that is kept.
    start: u64,
    /// The newest message; 0 for none.
    head: u64,
    /// Tokens of all messages.
    tokens: u64,
    /// The newest message that instructs; 0 for none.
    instruction: u64,
    ids: Ids,
    /// Ids of the drafts that are open.
    drafts: Vec<Box<str>>,
    state: State,
    /// Changes since the last snapshot.
    changes: u32,
}

impl Conversation {
    /// One as its streams say: its state, the offsets of the first record of its messages that is
    /// kept and of the next one, and its newest message if that is kept. Then
    /// [`Conversation::restore_change`] for each change behind the snapshot.
    pub fn load(
        state: State,
        first_offset: u64,
        next_offset: u64,
        newest: Option<&MessageView<'_>>,
    ) -> Self {
        let head = next_offset.saturating_sub(state.base);
        let start = (first_offset + 1).saturating_sub(state.base).max(1);
        let (tokens, instruction) = newest.map_or((0, 0), |newest| {
            let Links {
                tokens_before,
                instruction,
                ..
            } = newest.links;
            let instruction = match is_instructing(newest.role) {
                true => head,
                false => instruction,
            };
            let tokens = tokens_before.saturating_add(u64::from(newest.tokens));
            (tokens, instruction)
        });
        Self {
            start,
            head,
            tokens,
            instruction,
            ids: Ids::new(head + 1),
            drafts: Vec::new(),
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

    /// Tokens of all messages, those that are not kept any more included.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The links of the next message, whose event has that offset.
    pub fn links(&self, event: u64) -> Links {
        Links {
            event,
            tokens_before: self.tokens,
            instruction: self.instruction,
        }
    }

    /// A window of the newest messages, of which at most so many are looked at.
    pub fn window(&self, policy: &Policy, messages_max: usize) -> Result<Window, WindowError> {
        let summary = self.state.summary.as_ref();
        let bounds = Bounds {
            start: self.start,
            head: self.head,
            instruction: self.instruction,
            summary: summary.map(|summary| SummaryFact {
                through_seq: summary.through_seq,
                tokens: summary.tokens,
                is_estimated: summary.is_estimated,
            }),
            messages_max,
        };
        Window::new(policy, bounds)
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
        (offset + 1).saturating_sub(self.state.base)
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
        let drafts = |message: &NewMessage<'_>| message.id.is_some_and(|id| self.is_streamed(id));
        if let Some(index) = batch.iter().position(drafts) {
            return Err(Refusal::IdStreamed { index });
        }
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

    /// Decides whether a draft may be opened that becomes a message of that id: it may if that is
    /// [`Lookup::Nowhere`]. Then say [`Conversation::draft_opened`].
    pub fn decide_open<R: AsRef<[u8]>>(
        &self,
        id: &str,
        limits: &Limits,
        stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Lookup, Refusal> {
        let max = limits.drafts_max;
        match self.state.lifecycle {
            Lifecycle::Copying => return Err(Refusal::Copying),
            Lifecycle::Erased => return Err(Refusal::Gone),
            _ if self.is_streamed(id) => return Err(Refusal::IdStreamed { index: 0 }),
            _ => {}
        }
        match self.look_up(id, stored)? {
            Lookup::Nowhere if self.state.lifecycle == Lifecycle::Archived => {
                Err(Refusal::Archived)
            }
            Lookup::Nowhere if self.drafts.len() >= max => Err(Refusal::Drafts { max }),
            found => Ok(found),
        }
    }

    /// A draft of that id was opened: nobody else may use it.
    pub fn draft_opened(&mut self, id: &str) {
        self.drafts.push(id.into());
    }

    /// A draft of that id has become a message, or nothing.
    pub fn draft_closed(&mut self, id: &str) {
        self.drafts.retain(|it| **it != *id);
    }

    /// Whether a draft of that id is open.
    pub fn is_streamed(&self, id: &str) -> bool {
        self.drafts.iter().any(|it| **it == *id)
    }

    /// Decides about the message that a draft has become; that the conversation was archived
    /// meanwhile does not matter. Then say [`Conversation::draft_closed`].
    pub fn decide_draft<R: AsRef<[u8]>>(
        &self,
        message: &NewMessage<'_>,
        stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Decision, Refusal> {
        self.place(std::slice::from_ref(message), stored)
    }

    /// A message was appended under that id, as the next one, with the [`Conversation::links`] of
    /// before.
    pub fn appended(&mut self, id: &str, role: &str, tokens: u32) {
        self.head += 1;
        self.tokens = self.tokens.saturating_add(u64::from(tokens));
        if is_instructing(role) {
            self.instruction = self.head;
        }
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
        limits: &Limits,
        now_ms: u64,
    ) -> Result<Update, Refusal> {
        change::decide(self, expect, change, limits, now_ms)
    }

    /// An update was appended.
    pub fn changed(&mut self, update: Update) {
        change::apply(self, update);
    }
}

#[cfg(test)]
mod tests;

//! The engine of one loaded conversation.

mod change;
mod find;
mod retract;

use crate::context::{Bounds, Policy, SummaryFact, Window, WindowError};
use crate::decision::{Decision, Lookup, Refusal};
use crate::ids::{Ids, id_hash};
use crate::limits::Limits;
use crate::message::{NewMessage, is_instructing};
use crate::record::{Links, MessageView, StateChange};
use crate::retracted::Retracted;
use crate::state::{Change, Lifecycle, State};

pub use change::Update;
pub use retract::{Retract, RetractDecision, RetractExtent, RetractPlan};

/// The engine of one conversation. The shell calls it under the conversation's lock, together with
/// the appends, so that the engine's state always matches the streams.
#[derive(Debug)]
pub struct Conversation {
    /// The first retained message.
    start: u64,
    /// The newest message, or retraction; 0 for none.
    head: u64,
    /// Tokens of all messages, retracted or not.
    tokens: u64,
    /// The newest instruction; 0 for none.
    instruction: u64,
    ids: Ids,
    /// Message ids of the open drafts.
    drafts: Vec<Box<str>>,
    state: State,
    /// For each retraction that may not be durable: its number, and the retracted numbers before it.
    unsettled: Vec<(u64, Retracted)>,
    /// Number of changes since the last snapshot.
    changes: u32,
}

impl Conversation {
    /// Restores a conversation from its streams: its state, the offsets of the first retained and
    /// of the next message record, and its newest message if it is retained. Afterwards,
    /// [`Conversation::restore_change`] must be called for each change after the snapshot.
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
            unsettled: Vec::new(),
            changes: 0,
        }
    }

    /// Returns the newest message, or retraction; 0 for none.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Returns the first retained message; above the head if there is none.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the tokens of all messages, including messages that were retracted, or removed by
    /// retention.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the links of the next message, whose event has the offset `event`.
    pub fn links(&self, event: u64) -> Links {
        Links {
            event,
            tokens_before: self.tokens,
            instruction: self.instruction,
        }
    }

    /// Starts a window over the newest messages that examines at most `messages_max` of them.
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
        Ok(Window::new(policy, bounds)?.without(&self.state.retracted))
    }

    /// Returns the state apart from the messages.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns whether the conversation exists: a message was appended, or it has state.
    pub fn exists(&self) -> bool {
        self.head > 0 || self.state.version > 0
    }

    /// Returns the offset of a message in its stream.
    pub fn offset(&self, seq: u64) -> u64 {
        seq - 1 + self.state.base
    }

    /// Returns the sequence number of the message at an offset.
    pub fn seq(&self, offset: u64) -> u64 {
        (offset + 1).saturating_sub(self.state.base)
    }

    /// Returns the memory used by the ids, in bytes.
    pub fn ids_size(&self) -> usize {
        self.ids.memory_size()
    }

    /// Decides about a batch that passed [`crate::Limits::check`]. `expect` is the required number
    /// of the newest message; it is ignored if the whole batch was already appended. `stored`
    /// returns the record of a message if it is at hand; other records are requested by the
    /// decision.
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
        let plan = match self.assign_numbers(batch, stored)? {
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

    /// Decides whether a draft may be opened for a message with that id. It may if the result is
    /// [`Lookup::Nowhere`]; then [`Conversation::draft_opened`] must be called.
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

    /// Reserves the message id of a draft that was opened.
    pub fn draft_opened(&mut self, id: &str) {
        self.drafts.push(id.into());
    }

    /// Releases the message id of a draft that became a message or was dropped.
    pub fn draft_closed(&mut self, id: &str) {
        self.drafts.retain(|it| **it != *id);
    }

    /// Returns whether a draft with that message id is open.
    pub fn is_streamed(&self, id: &str) -> bool {
        self.drafts.iter().any(|it| **it == *id)
    }

    /// Decides about the message that a draft becomes. It is accepted even if the conversation was
    /// archived meanwhile. Afterwards [`Conversation::draft_closed`] must be called.
    pub fn decide_draft<R: AsRef<[u8]>>(
        &self,
        message: &NewMessage<'_>,
        stored: impl FnMut(u64) -> Option<R>,
    ) -> Result<Decision, Refusal> {
        self.assign_numbers(std::slice::from_ref(message), stored)
    }

    /// Records that a message was appended as the next one, with the [`Conversation::links`] from
    /// before the call.
    pub fn appended(&mut self, id: &str, role: &str, tokens: u32) {
        self.head += 1;
        self.tokens = self.tokens.saturating_add(u64::from(tokens));
        if is_instructing(role) {
            self.instruction = self.head;
        }
        self.ids.push(id_hash(id), self.start);
    }

    /// Adds the id hashes ([`id_hash`]) of the messages from `from` on. Returns false if the range
    /// does not adjoin the known ids.
    pub fn learn(&mut self, from: u64, hashes: &[u64]) -> bool {
        self.ids.learn(from, hashes)
    }

    /// Frees the memory of the ids of older messages.
    pub fn forget_older_ids(&mut self) {
        self.ids.forget_older();
    }

    /// Records that messages before `start` were removed.
    pub fn trimmed(&mut self, start: u64) {
        self.start = self.start.max(start);
        self.ids.trim(self.start);
    }

    /// Restores a change, in the order of the stream.
    pub fn restore_change(&mut self, change: &StateChange<'_>) {
        let StateChange::Cursor { who, seq } = change;
        self.state.cursors.set(who, *seq);
        self.changes += 1;
    }

    /// Decides about a change of the state; `expect` is the required version. Returns the record to
    /// append to the stream of state; then [`Conversation::changed`] must be called.
    pub fn decide_change(
        &self,
        expect: Option<u64>,
        change: &Change,
        limits: &Limits,
        now_ms: u64,
    ) -> Result<Update, Refusal> {
        change::decide(self, expect, change, limits, now_ms)
    }

    /// Applies an update that was appended.
    pub fn changed(&mut self, update: Update) {
        change::apply(self, update);
    }
}

#[cfg(test)]
mod tests;

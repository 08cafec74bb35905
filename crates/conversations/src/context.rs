//! Context windows: the messages of a conversation that are sent to a model.
//!
//! A window consists of whole *turns*. A turn begins with a message whose role is not `assistant`,
//! `tool`, `system` or `developer`, and ends before the next such message. Messages covered by the
//! summary are not considered. Instructions (`system`, `developer`) that the policy keeps come
//! first, however old they are.
//!
//! **No call without its result.** A tool call whose result lies outside the window is left out of
//! its message, and so is a result whose call lies outside.
//!
//! **The prefix is stable.** A provider caches requests that begin like the previous one. If the
//! window began with the oldest turn that fits, it would begin with another turn at almost every
//! request. So it begins at a *mark*. A turn is a mark if a multiple of the step lies between its
//! beginning and the beginning of the previous turn, counted in tokens of the whole conversation
//! (or in messages, if the policy limits those), or if the turn is at least one step long. Marks
//! never move: the window begins at the same mark until it would exceed the budget, and then at one
//! about a step further on. The range with stubs ends at a mark, too.
//!
//! Invariants: *a window never exceeds its budget; the same messages give the same window; while a
//! conversation grows, the beginning of its window never moves back.*

mod cut;
mod pairing;
mod parts;
mod policy;
mod turns;

use parts::ExaminedMessage;
pub use parts::Treatment;
pub use policy::{Kinds, Policy, PolicyProblem, STEP_PERMILLE_MAX, Strategy};

use crate::record::MessageView;
use crate::retracted::Retracted;

/// The state of a conversation that its windows depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first retained message.
    pub start: u64,
    /// The newest message or retraction; 0 for none.
    pub head: u64,
    /// The newest instruction; 0 for none.
    pub instruction: u64,
    /// The summary of older messages.
    pub summary: Option<SummaryFact>,
    /// Maximum number of messages to examine.
    pub messages_max: usize,
}

/// The facts about a summary that the engine needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryFact {
    /// The last message that the summary covers.
    pub through_seq: u64,
    /// The summary's cost in tokens.
    pub tokens: u32,
    /// True if `tokens` is an estimate.
    pub is_estimated: bool,
}

/// The window as selected: the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// True if the summary comes before the messages.
    pub has_summary: bool,
    /// The first message of the window; `head_seq + 1` if there is none.
    pub from_seq: u64,
    /// The newest message.
    pub head_seq: u64,
    /// The messages of the window in order. Those before `from_seq` are kept instructions.
    pub messages: Vec<WindowMessage>,
    /// The total cost in tokens.
    pub tokens: u64,
    /// True if `tokens` is an estimate.
    pub is_estimated: bool,
    /// The number of parts per kind (indexed by [`PartKind`](crate::PartKind) as a number) that are
    /// omitted or replaced by a stub.
    pub dropped: [u32; 9],
}

impl Cut {
    /// Returns the first message shown after the summary and the kept instructions; `head_seq + 1`
    /// if there is none. It can differ from `from_seq`, as that message may have nothing to show.
    pub fn first_shown_seq(&self) -> u64 {
        let mut shown = self.messages.iter().map(|it| it.seq);
        let first = shown.find(|seq| *seq >= self.from_seq);
        first.unwrap_or(self.head_seq + 1)
    }
}

/// A message of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowMessage {
    /// The message's sequence number.
    pub seq: u64,
    /// The parts that are omitted or replaced by a stub, by index.
    pub treated: Vec<(u16, Treatment)>,
}

/// The reason why no window can be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// The policy has no budget.
    #[error("a budget is needed")]
    NoBudget,
    /// The messages that must be in the window exceed the budget.
    #[error(
        "messages {from_seq} to {to_seq} must stay together and cost {tokens} tokens (budget {limit})"
    )]
    OverBudget {
        /// The first message that must be in the window.
        from_seq: u64,
        /// The last message that must be in the window.
        to_seq: u64,
        /// The cost of the window in tokens, as far as it was added up.
        tokens: u64,
        /// The budget without the reserve, in tokens.
        limit: u64,
    },
    /// The summary and the kept instructions alone exceed the budget.
    #[error("the summary and the instructions cost {tokens} tokens (budget {limit})")]
    FixedOverBudget {
        /// Their cost in tokens, as far as it was added up.
        tokens: u64,
        /// The budget without the reserve, in tokens.
        limit: u64,
    },
    /// The window would need more messages than may be examined.
    #[error("the window would contain more than {max} messages")]
    TooLong {
        /// Maximum number of messages to examine.
        max: usize,
    },
}

/// A window under construction. It requests messages one by one, newest first.
#[derive(Clone, Debug)]
pub struct Window {
    policy: Policy,
    bounds: Bounds,
    /// The numbers without a message.
    retracted: Retracted,
    /// The budget without the reserve, in tokens; `None` for no limit.
    limit: Option<u64>,
    /// The first message that may be in the window; instructions may be older.
    floor: u64,
    /// The examined messages, newest first, without gaps but for retracted ones.
    entries: Vec<ExaminedMessage>,
    /// Kept instructions older than `entries`, newest first.
    kept: Vec<ExaminedMessage>,
    /// The number of examined messages without kept instructions; `least` is the minimum of their
    /// tokens.
    count: u64,
    least: u64,
    /// True if the first message of a turn was examined.
    has_turn: bool,
    /// Tokens of the kept instructions.
    kept_tokens: u64,
    /// Index of the entry at which the messages first exceeded what can fit.
    full_at: Option<usize>,
    next: Next,
    looked: usize,
}

/// The measure of turn positions; it does not depend on how many messages are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// Tokens of all earlier messages.
    Tokens,
    /// The number of earlier messages.
    Messages,
}

impl Scale {
    fn begin(self, entry: &ExaminedMessage) -> u64 {
        match self {
            Self::Tokens => entry.tokens_before,
            Self::Messages => entry.seq,
        }
    }

    fn end(self, entry: &ExaminedMessage) -> u64 {
        match self {
            Self::Tokens => entry.tokens_before.saturating_add(u64::from(entry.tokens)),
            Self::Messages => entry.seq.saturating_add(1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Scan(u64),
    /// An instruction older than the scanned messages.
    Instruction(u64),
    Nothing,
    TooLong,
}

impl Window {
    /// Starts a window for a policy that passed [`Policy::check`].
    pub fn new(policy: &Policy, bounds: Bounds) -> Result<Self, WindowError> {
        let limit = match policy.budget {
            0 if policy.strategy == Strategy::Budget => return Err(WindowError::NoBudget),
            0 => None,
            budget => Some(u64::from(budget.saturating_sub(policy.reserve))),
        };
        let summarized = bounds.summary.map_or(0, |summary| summary.through_seq);
        let floor = bounds.start.max(summarized.saturating_add(1));
        let mut window = Self {
            policy: policy.clone(),
            bounds,
            retracted: Retracted::default(),
            limit,
            floor,
            entries: Vec::new(),
            kept: Vec::new(),
            count: 0,
            least: 0,
            has_turn: false,
            kept_tokens: 0,
            full_at: None,
            next: Next::Scan(bounds.head),
            looked: 0,
        };
        if bounds.head < floor {
            window.look_for(bounds.instruction);
        }
        Ok(window)
    }

    /// Leaves retracted messages out. It must be called before the first message is examined.
    #[must_use]
    pub fn without(mut self, retracted: &Retracted) -> Self {
        self.retracted = retracted.clone();
        if let Next::Scan(seq) = self.next {
            self.scan(seq, self.bounds.instruction);
        }
        self
    }

    /// Returns the message to pass to [`Window::look`] next; `None` if the window can be
    /// [cut](Window::cut).
    pub fn wants(&self) -> Option<u64> {
        match self.next {
            Next::Scan(seq) | Next::Instruction(seq) => Some(seq),
            Next::Nothing | Next::TooLong => None,
        }
    }

    /// Examines the requested message.
    ///
    /// # Panics
    /// If `seq` is not the requested message.
    pub fn look(&mut self, seq: u64, message: &MessageView<'_>) {
        assert_eq!(self.wants(), Some(seq), "messages are looked at in order");
        self.looked += 1;
        let entry = ExaminedMessage::new(seq, message, &self.policy);
        let instruction = message.links.instruction;
        if entry.is_kept {
            self.kept_tokens += u64::from(entry.tokens);
        }
        if let Next::Instruction(_) = self.next {
            if entry.is_kept {
                self.kept.push(entry);
            }
            self.look_for(instruction);
            return;
        }
        if !entry.is_kept {
            self.count += 1;
            self.least += self.least_weight(&entry);
            self.has_turn |= entry.opens_turn;
        }
        self.entries.push(entry);
        if self.full_at.is_none() && self.is_full() {
            self.full_at = Some(self.entries.len() - 1);
        }
        if seq <= self.floor || self.is_enough() {
            self.look_for(instruction);
        } else if self.looked >= self.bounds.messages_max {
            self.next = match self.policy.strategy {
                Strategy::Manual => Next::TooLong,
                _ => self.instruction(instruction),
            };
        } else {
            self.scan(seq - 1, instruction);
        }
    }

    /// Continues with the newest message up to `seq` that was not retracted. Without one, it
    /// continues with the given instruction.
    fn scan(&mut self, seq: u64, instruction: u64) {
        let live = self.retracted.newest_live(seq);
        if live >= self.floor {
            self.next = Next::Scan(live);
        } else {
            self.floor = seq + 1;
            self.look_for(instruction);
        }
    }

    fn is_enough(&self) -> bool {
        let (Some(full_at), Some(oldest)) = (self.full_at, self.entries.last()) else {
            return false;
        };
        let full = &self.entries[full_at];
        let is_far = |(scale, step): (Scale, u64)| {
            scale.begin(full).saturating_sub(scale.begin(oldest)) >= step
        };
        // A manual window contains everything or fails. Other strategies examine one more step, to
        // find out whether the first turn that fits is a mark.
        self.policy.strategy == Strategy::Manual || self.scales().all(is_far)
    }

    fn look_for(&mut self, instruction: u64) {
        self.next = self.instruction(instruction);
    }

    /// Returns the next instruction to examine, if instructions are kept and there is room.
    fn instruction(&self, seq: u64) -> Next {
        let is_over = self.limit.is_some_and(|limit| self.kept_tokens > limit);
        if self.policy.keep.is_empty() || is_over || seq == 0 || seq < self.bounds.start {
            return Next::Nothing;
        }
        match self.looked < self.bounds.messages_max.saturating_mul(2) {
            true => Next::Instruction(seq),
            false => Next::TooLong,
        }
    }

    /// Returns the minimum cost of a message, with everything replaced that can be.
    fn least_weight(&self, entry: &ExaminedMessage) -> u64 {
        match self.policy.strategy {
            Strategy::Budget | Strategy::LastN { .. } => entry.stubbed,
            Strategy::SkipParts { .. } | Strategy::Manual => entry.whole,
        }
    }

    /// Returns whether no window can reach further back than the examined messages.
    fn is_full(&self) -> bool {
        let is_over = self.limit.is_some_and(|limit| self.least > limit);
        // The newest turn may have more messages than the limit.
        let is_long = self.count_max().is_some_and(|max| self.count > max);
        is_over || (is_long && self.has_turn)
    }

    /// Returns the maximum number of messages, if the strategy limits it.
    fn count_max(&self) -> Option<u64> {
        match self.policy.strategy {
            Strategy::LastN { count } => Some(u64::from(count)),
            Strategy::SkipParts { count: 0 } => None,
            Strategy::SkipParts { count } => Some(u64::from(count)),
            Strategy::Budget | Strategy::Manual => None,
        }
    }

    /// Returns the measures in which marks are computed, each with the length of a step.
    fn scales(&self) -> impl Iterator<Item = (Scale, u64)> + use<> {
        let permille = u64::from(self.policy.step_permille.min(STEP_PERMILLE_MAX));
        let step = move |whole: u64| (whole.saturating_mul(permille) / 1000).max(1);
        let tokens = self.limit.map(|limit| (Scale::Tokens, step(limit)));
        let messages = self.count_max().map(|max| (Scale::Messages, step(max)));
        tokens.into_iter().chain(messages)
    }

    /// Selects the window once all requested messages were examined.
    ///
    /// # Panics
    /// If [`Window::wants`] still requests a message.
    pub fn cut(self) -> Result<Cut, WindowError> {
        assert_eq!(self.wants(), None, "everything was looked at");
        match self.next {
            Next::TooLong => Err(WindowError::TooLong {
                max: self.bounds.messages_max,
            }),
            _ => cut::cut(&self),
        }
    }
}

#[cfg(test)]
mod tests;

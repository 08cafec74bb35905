//! The window: the messages of a conversation that a model is shown.
//!
//! A window is made of whole *turns*: a turn begins with a message of somebody who is neither an
//! assistant nor a tool and does not instruct, and goes on to the next such message. Messages that the
//! summary stands for are not looked at. Instructions that are kept come first, however old they are.
//!
//! **No call without its result.** A call whose result is not in the window is left out of its
//! message, and so is a result whose call is not.
//!
//! **The prefix is stable.** A provider caches requests that begin like the one before. So if not
//! everything fits, the window does not begin with the oldest turn that fits, which would be another
//! one each time, but at a *mark*: a turn is a mark if a multiple of the step lies between its
//! beginning and that of the turn before it, counted in the tokens of the whole conversation (or in
//! messages, if the policy bounds them), or if it is as long as a step itself. Marks never move, so
//! the window begins at the same one until it would be over budget, and then at one about a step
//! further on. Stubs end at a mark, too.
//!
//! Invariants: *never over the budget; the same messages give the same window; while a conversation
//! grows its window never begins earlier than before.*

mod bonds;
mod cut;
mod parts;
mod policy;
mod turns;

use parts::Entry;
pub use parts::Treatment;
pub use policy::{Kinds, Policy, PolicyProblem, STEP_PERMILLE_MAX, Strategy};

use crate::record::MessageView;

/// What a window is cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first message that is kept.
    pub start: u64,
    /// The newest message; 0 for none.
    pub head: u64,
    /// The newest message that instructs; 0 for none.
    pub instruction: u64,
    /// What stands for older messages.
    pub summary: Option<SummaryFact>,
    /// Messages that are looked at, at most.
    pub messages_max: usize,
}

/// What the engine knows of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryFact {
    /// The last message that it stands for.
    pub through_seq: u64,
    /// What it costs a model.
    pub tokens: u32,
    /// Whether that is an estimate.
    pub is_estimated: bool,
}

/// A window that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Whether the summary comes before the messages.
    pub has_summary: bool,
    /// The message the window begins with; one behind the head if there is none.
    pub from_seq: u64,
    /// The newest message.
    pub head_seq: u64,
    /// What a model is shown, in order; those before `from_seq` are kept instructions.
    pub messages: Vec<Shown>,
    /// What all of it costs.
    pub tokens: u64,
    /// Whether that is an estimate.
    pub is_estimated: bool,
    /// How many parts of each kind (by its number) are not shown as they are.
    pub dropped: [u32; 9],
}

impl Cut {
    /// The first message behind the summary and the instructions that are kept; one behind the head
    /// if there is none. The message that the window begins with may have nothing to show.
    pub fn first_shown_seq(&self) -> u64 {
        let mut shown = self.messages.iter().map(|it| it.seq);
        let first = shown.find(|seq| *seq >= self.from_seq);
        first.unwrap_or(self.head_seq + 1)
    }
}

/// A message that a model is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Which one.
    pub seq: u64,
    /// The parts that are not shown as they are, by index.
    pub treated: Vec<(u16, Treatment)>,
}

/// Why there is no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Nobody said what it may cost.
    #[error("a budget is needed")]
    NoBudget,
    /// What has to be in it is too much.
    #[error(
        "messages {from_seq} to {to_seq} cannot be parted and cost {tokens} tokens, of which there are {limit}"
    )]
    OverBudget {
        /// The first message that has to be in the window.
        from_seq: u64,
        /// The last one.
        to_seq: u64,
        /// What the window would cost, as far as it was added up.
        tokens: u64,
        /// What it may cost.
        limit: u64,
    },
    /// The summary and the instructions that are kept are too much on their own.
    #[error("the summary and the instructions cost {tokens} tokens, of which there are {limit}")]
    FixedOverBudget {
        /// What they cost, as far as that was added up.
        tokens: u64,
        /// What the window may cost.
        limit: u64,
    },
    /// There are too many messages to look at.
    #[error("a window is cut from at most {max} messages")]
    TooLong {
        /// The limit.
        max: usize,
    },
}

/// A window that is being cut: it says which message it wants to look at next, newest first.
#[derive(Clone, Debug)]
pub struct Window {
    policy: Policy,
    bounds: Bounds,
    /// Tokens it may cost; `None` for any.
    limit: Option<u64>,
    /// The first message that may be in it, but for instructions.
    floor: u64,
    /// Looked at, newest first, without a gap.
    entries: Vec<Entry>,
    /// Instructions before those, newest first.
    kept: Vec<Entry>,
    /// Those that are not instructions, and their tokens at least.
    count: u64,
    least: u64,
    /// Whether the beginning of a turn was seen.
    has_turn: bool,
    /// Tokens of the instructions.
    kept_tokens: u64,
    /// The entry with which they became more than can fit.
    full_at: Option<usize>,
    next: Next,
    looked: usize,
}

/// What the beginnings of turns are measured in, the same however much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// Of all messages before.
    Tokens,
    /// All messages before.
    Messages,
}

impl Scale {
    fn begin(self, entry: &Entry) -> u64 {
        match self {
            Self::Tokens => entry.tokens_before,
            Self::Messages => entry.seq,
        }
    }

    fn end(self, entry: &Entry) -> u64 {
        match self {
            Self::Tokens => entry.tokens_before.saturating_add(u64::from(entry.tokens)),
            Self::Messages => entry.seq.saturating_add(1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Scan(u64),
    /// An instruction before what was scanned.
    Instruction(u64),
    Nothing,
    TooLong,
}

impl Window {
    /// A window of that policy, which [`Policy::check`] let pass.
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

    /// The message to look at next; `None` when it can be cut.
    pub fn wants(&self) -> Option<u64> {
        match self.next {
            Next::Scan(seq) | Next::Instruction(seq) => Some(seq),
            Next::Nothing | Next::TooLong => None,
        }
    }

    /// Looks at the message that it wants.
    ///
    /// # Panics
    /// When it is another one.
    pub fn look(&mut self, seq: u64, message: &MessageView<'_>) {
        assert_eq!(self.wants(), Some(seq), "messages are looked at in order");
        self.looked += 1;
        let entry = Entry::new(seq, message, &self.policy);
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
            self.next = Next::Scan(seq - 1);
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
        // A manual window is all or nothing. For others a step more is looked at, so that it is
        // known whether the first turn that fits is a mark.
        self.policy.strategy == Strategy::Manual || self.scales().all(is_far)
    }

    fn look_for(&mut self, instruction: u64) {
        self.next = self.instruction(instruction);
    }

    /// The next instruction, if any may be kept and there is room for it.
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

    /// What a message weighs at least, whatever is replaced.
    fn least_weight(&self, entry: &Entry) -> u64 {
        match self.policy.strategy {
            Strategy::Budget | Strategy::LastN { .. } => entry.stubbed,
            Strategy::SkipParts { .. } | Strategy::Manual => entry.whole,
        }
    }

    /// Whether no window reaches back to here.
    fn is_full(&self) -> bool {
        let is_over = self.limit.is_some_and(|limit| self.least > limit);
        // Of the newest turn there may be more messages than are wanted.
        let is_long = self.count_max().is_some_and(|max| self.count > max);
        is_over || (is_long && self.has_turn)
    }

    /// How many messages it has at most, if they are counted.
    fn count_max(&self) -> Option<u64> {
        match self.policy.strategy {
            Strategy::LastN { count } => Some(u64::from(count)),
            Strategy::SkipParts { count: 0 } => None,
            Strategy::SkipParts { count } => Some(u64::from(count)),
            Strategy::Budget | Strategy::Manual => None,
        }
    }

    /// What marks are counted in, and how long a step is.
    fn scales(&self) -> impl Iterator<Item = (Scale, u64)> + use<> {
        let permille = u64::from(self.policy.step_permille.min(STEP_PERMILLE_MAX));
        let step = move |whole: u64| (whole.saturating_mul(permille) / 1000).max(1);
        let tokens = self.limit.map(|limit| (Scale::Tokens, step(limit)));
        let messages = self.count_max().map(|max| (Scale::Messages, step(max)));
        tokens.into_iter().chain(messages)
    }

    /// Cuts it, when it wants to look at nothing more.
    ///
    /// # Panics
    /// When it does.
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

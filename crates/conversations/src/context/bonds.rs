//! Which parts belong together: a call and its results.

use std::collections::HashMap;

use super::parts::Entry;
use crate::message::{PartFact, PartKind};

/// How far a bond holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Over any number of turns.
    Far,
    /// Within a turn.
    Turn,
}

/// Calls and results of messages in order.
#[derive(Debug)]
pub(super) struct Bonds {
    /// For each message whether a window may begin with it.
    is_free: Vec<bool>,
    /// Parts without their other half, by message and part, sorted.
    loose: Vec<(usize, u16)>,
}

/// The newest call of an id.
struct Call {
    message: usize,
    part: u16,
    turn: usize,
    is_answered: bool,
}

impl Bonds {
    /// Of these messages. `is_skipped` are parts that are not shown at all. If the messages are not
    /// all there are, a result without a call may belong to one before them.
    pub(super) fn new(
        messages: &[&Entry],
        reach: Reach,
        is_all: bool,
        is_skipped: impl Fn(&PartFact) -> bool,
    ) -> Self {
        let mut is_free = vec![true; messages.len()];
        let mut loose = Vec::new();
        let mut calls: HashMap<u64, Call> = HashMap::new();
        // Of each message, how far back its bonds go.
        let mut reaches: Vec<usize> = (0..messages.len()).collect();
        let mut turn = 0;
        for (index, message) in messages.iter().enumerate() {
            turn += usize::from(message.opens_turn);
            for (part, fact) in (0..).zip(&message.facts) {
                if message.is_kept || fact.call == 0 || is_skipped(fact) {
                    continue;
                }
                match fact.kind {
                    PartKind::ToolCall => {
                        let call = Call {
                            message: index,
                            part,
                            turn,
                            is_answered: false,
                        };
                        // An id that is used again begins anew.
                        if let Some(before) = calls.insert(fact.call, call) {
                            loose.extend(before.unanswered());
                        }
                    }
                    PartKind::ToolResult => match calls.get_mut(&fact.call) {
                        Some(call) if reach == Reach::Far || call.turn == turn => {
                            call.is_answered = true;
                            reaches[index] = reaches[index].min(call.message);
                        }
                        found => {
                            let is_before = found.is_none() && !is_all && reach == Reach::Far;
                            if is_before {
                                reaches[index] = 0;
                                is_free[0] = false;
                            }
                            loose.push((index, part));
                        }
                    },
                    _ => {}
                }
            }
        }
        loose.extend(calls.values().flat_map(Call::unanswered));
        loose.sort_unstable();
        // A window may not begin between the first and the last message of a bond.
        let mut reached = messages.len();
        for (index, back) in reaches.iter().enumerate().rev() {
            reached = reached.min(*back);
            is_free[index] &= reached >= index;
        }
        Self { is_free, loose }
    }

    /// Whether a window may begin with that message.
    pub(super) fn is_free(&self, index: usize) -> bool {
        self.is_free[index]
    }

    /// Whether a part has lost its other half.
    pub(super) fn is_loose(&self, index: usize, part: u16) -> bool {
        self.loose.binary_search(&(index, part)).is_ok()
    }
}

impl Call {
    fn unanswered(&self) -> Option<(usize, u16)> {
        (!self.is_answered).then_some((self.message, self.part))
    }
}

//! Which parts belong together: a call and its results.

use std::collections::HashMap;

use super::parts::Entry;
use crate::message::{PartFact, PartKind};

/// Calls without a result and results without a call, among messages in order.
#[derive(Debug)]
pub(super) struct Loose(Vec<(usize, u16)>);

/// The newest call of an id.
struct Call {
    message: usize,
    part: u16,
    is_answered: bool,
}

impl Loose {
    /// Of these messages. `is_skipped` are parts that are not shown at all.
    pub(super) fn new(messages: &[&Entry], is_skipped: impl Fn(&PartFact) -> bool) -> Self {
        let mut loose = Vec::new();
        let mut calls: HashMap<u64, Call> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            for (part, fact) in (0..).zip(&message.facts) {
                if message.is_kept || is_skipped(fact) {
                    continue;
                }
                match fact.kind {
                    // Without an id nothing can answer it, and it answers nothing.
                    PartKind::ToolCall | PartKind::ToolResult if fact.call == 0 => {
                        loose.push((index, part));
                    }
                    PartKind::ToolCall => {
                        let call = Call {
                            message: index,
                            part,
                            is_answered: false,
                        };
                        // An id that is used again begins anew.
                        if let Some(before) = calls.insert(fact.call, call) {
                            loose.extend(before.unanswered());
                        }
                    }
                    PartKind::ToolResult => match calls.get_mut(&fact.call) {
                        Some(call) => call.is_answered = true,
                        None => loose.push((index, part)),
                    },
                    _ => {}
                }
            }
        }
        loose.extend(calls.values().flat_map(Call::unanswered));
        loose.sort_unstable();
        Self(loose)
    }

    /// Whether a part of the message at `index` has no other half.
    pub(super) fn contains(&self, index: usize, part: u16) -> bool {
        self.0.binary_search(&(index, part)).is_ok()
    }
}

impl Call {
    fn unanswered(&self) -> Option<(usize, u16)> {
        (!self.is_answered).then_some((self.message, self.part))
    }
}

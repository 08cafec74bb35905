//! Pairing of tool calls and their results.

use std::collections::HashMap;

use super::parts::ExaminedMessage;
use crate::message::{PartFact, PartKind};

/// Calls without a result and results without a call in a range of messages, as message index and
/// part index.
#[derive(Debug)]
pub(super) struct UnpairedParts(Vec<(usize, u16)>);

/// The newest call with an id.
struct Call {
    message: usize,
    part: u16,
    is_answered: bool,
}

impl UnpairedParts {
    /// Pairs the calls and results in `messages`. Parts for which `is_skipped` holds are not shown
    /// and do not count.
    pub(super) fn new(
        messages: &[&ExaminedMessage],
        is_skipped: impl Fn(&PartFact) -> bool,
    ) -> Self {
        let mut unpaired = Vec::new();
        let mut calls: HashMap<u64, Call> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            for (part, fact) in (0..).zip(&message.facts) {
                if message.is_kept || is_skipped(fact) {
                    continue;
                }
                match fact.kind {
                    // Without an id, a call cannot be answered and a result answers no call.
                    PartKind::ToolCall | PartKind::ToolResult if fact.call == 0 => {
                        unpaired.push((index, part));
                    }
                    PartKind::ToolCall => {
                        let call = Call {
                            message: index,
                            part,
                            is_answered: false,
                        };
                        // A call that reuses an id replaces the earlier call.
                        if let Some(before) = calls.insert(fact.call, call) {
                            unpaired.extend(before.unanswered());
                        }
                    }
                    PartKind::ToolResult => match calls.get_mut(&fact.call) {
                        Some(call) => call.is_answered = true,
                        None => unpaired.push((index, part)),
                    },
                    _ => {}
                }
            }
        }
        unpaired.extend(calls.values().flat_map(Call::unanswered));
        unpaired.sort_unstable();
        Self(unpaired)
    }

    /// Returns whether a part of the message at `index` lacks its counterpart.
    pub(super) fn contains(&self, index: usize, part: u16) -> bool {
        self.0.binary_search(&(index, part)).is_ok()
    }
}

impl Call {
    fn unanswered(&self) -> Option<(usize, u16)> {
        (!self.is_answered).then_some((self.message, self.part))
    }
}

//! Choice of the conversation for a user's next message.

use std::cell::Cell;
use std::rc::Rc;

use crate::store::LoadSpec;

/// Sequence of one user's conversations, shared by the user's slots.
#[derive(Debug, Clone)]
pub(super) struct ConversationCursor {
    vu: u32,
    /// Messages after which the next conversation begins. `None`: there is only one.
    messages: Option<u64>,
    sent: Rc<Cell<u64>>,
}

impl ConversationCursor {
    pub(super) fn of(spec: &LoadSpec, vu: u32) -> Self {
        Self {
            vu,
            messages: spec.messages,
            sent: Rc::default(),
        }
    }

    /// Returns the name of the conversation with this number.
    pub(super) fn name(&self, number: u64) -> String {
        match number {
            0 => format!("vu-{}", self.vu),
            number => format!("vu-{}-{number}", self.vu),
        }
    }

    /// Returns the number of the conversation for the next message, which counts as sent.
    pub(super) fn next(&self) -> u64 {
        let sent = self.sent.get();
        self.sent.set(sent + 1);
        self.messages.map_or(0, |messages| sent / messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_slots_share_a_conversation_until_it_is_full() {
        let turn = |messages| ConversationCursor {
            vu: 3,
            messages,
            sent: Rc::default(),
        };
        let one = turn(Some(2));
        let other_place = one.clone();
        let names = [one.next(), other_place.next(), one.next()].map(|next| one.name(next));
        assert_eq!(names, ["vu-3", "vu-3", "vu-3-1"]);
        let ever = turn(None);
        assert!((0..1_000).all(|_| ever.next() == 0));
    }
}

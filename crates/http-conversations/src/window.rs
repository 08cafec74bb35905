//! Messages of a context window, with dropped parts omitted or replaced by a short text.

use conversation_service::{Message, MessageView, Treatment};
use message_json::facts::shrunk;
use serde_json::value::RawValue;

use super::outgoing::push_message;

/// Appends a message as the window shows it.
pub(super) fn push_shown(out: &mut Vec<u8>, message: &Message<'_>, treated: &[(u16, Treatment)]) {
    let Message { seq, at_ms, view } = message;
    let parts = match treated {
        [] => None,
        treated => serde_json::from_slice::<Vec<&RawValue>>(view.parts)
            .ok()
            .map(|parts| shown(&parts, treated)),
    };
    match parts {
        None => push_message(out, *seq, *at_ms, view),
        Some(parts) => {
            let parts = parts.as_bytes();
            let view = MessageView { parts, ..*view };
            push_message(out, *seq, *at_ms, &view);
        }
    }
}

fn shown(parts: &[&RawValue], treated: &[(u16, Treatment)]) -> String {
    let mut text = String::from("[");
    for (index, part) in parts.iter().enumerate() {
        let treatment = treated.iter().find(|(it, _)| usize::from(*it) == index);
        let shown = match treatment {
            Some((_, Treatment::Omit)) => continue,
            Some((_, Treatment::Stub)) => shrunk(part.get()),
            None => part.get().to_owned(),
        };
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&shown);
    }
    text.push(']');
    text
}

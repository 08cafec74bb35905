//! Events of conversations as records of a topic: one JSON object per event.

use conversation_service::feed::{EventContent, Row};
use conversation_service::{Lifecycle, MessageView};
use node::EventEncoder;

use super::outgoing::{push, push_message, push_metadata, push_number, push_text};

/// Encodes events in the format of `docs/topics.md`.
#[derive(Clone, Copy, Debug)]
pub struct EventJson;

impl EventEncoder for EventJson {
    fn encode(&self, conversation: &str, row: &Row, out: &mut Vec<u8>) {
        let kind = match &row.happened {
            EventContent::Message { .. } => "message",
            EventContent::Retracted { .. } => "retracted",
            EventContent::State(_) => "state",
            EventContent::Erased => "erased",
        };
        push(out, b"{\"event\":");
        push_text(out, kind);
        push(out, b",\"conversation\":");
        push_text(out, conversation);
        match &row.happened {
            EventContent::Message { seq, record } => match MessageView::decode(record) {
                Ok(view) => {
                    push(out, b",\"message\":");
                    push_message(out, *seq, row.at_ms, &view);
                }
                // The message is named by its sequence number; reading it returns the decoding
                // error.
                Err(_) => {
                    push(out, b",\"seq\":");
                    push_number(out, *seq);
                }
            },
            EventContent::Retracted {
                first_seq,
                last_seq,
            } => {
                push(out, b",\"first_seq\":");
                push_number(out, *first_seq);
                push(out, b",\"last_seq\":");
                push_number(out, *last_seq);
            }
            EventContent::State(state) => {
                push(out, b",\"version\":");
                push_number(out, state.version);
                push(out, b",\"archived\":");
                let is_archived = state.lifecycle == Lifecycle::Archived;
                push(out, if is_archived { b"true" } else { b"false" });
                push(out, b",\"metadata\":");
                push_metadata(out, &state.metadata);
                if let Some(cleared) = state.cleared {
                    push(out, b",\"cleared_seq\":");
                    push_number(out, cleared.through_seq);
                }
            }
            EventContent::Erased => {}
        }
        push(out, b"}");
    }
}

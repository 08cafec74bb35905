//! Messages of conversations: APPEND frames to the node, and messages to frames.

use model::ErrorCode;
use node::conversations::{Batch, Message, NewMessage, PartFact};
use node::{Failure, Ticket, Turn};
use wire::Append;

use super::dispatch::Fatal;
use crate::{facts, metadata};

/// Appends the messages of an APPEND to the conversation of its route.
pub(super) fn append(
    turn: &mut Turn<'_>,
    route: u16,
    tag: Ticket,
    append: &Append<'_>,
) -> Result<(), Fatal> {
    let mut facts: Vec<PartFact> = Vec::new();
    let mut messages = Vec::new();
    for (index, record) in append.records().enumerate() {
        let message = wire::NewMessage::decode(record)?;
        let read = facts::extract(message.parts, &mut facts).map_err(|error| error.to_string());
        let checked = metadata::check(message.metadata).map_err(|error| error.to_string());
        if let Err(error) = read.and(checked) {
            let message = format!("message {index}: {error}");
            turn.refuse(tag, Failure::new(ErrorCode::InvalidArgument, &message));
            return Ok(());
        }
        messages.push((message, facts.len()));
    }
    let mut begin = 0;
    let messages: Vec<_> = messages
        .iter()
        .map(|(message, end)| NewMessage {
            id: Some(message.id).filter(|id| !id.is_empty()),
            role: message.role,
            from: message.from,
            tokens: message.tokens,
            facts: &facts[std::mem::replace(&mut begin, *end)..*end],
            parts: message.parts,
            metadata: message.metadata,
        })
        .collect();
    let batch = Batch {
        expect: append.expected,
        messages: &messages,
    };
    turn.append_messages(route, tag, batch);
    Ok(())
}

/// Returns a message as it is encoded, with its sequence number and its time.
pub(super) fn encoded<'m>(message: &Message<'m>) -> (u64, u64, wire::Message<'m>) {
    let view = &message.view;
    let encoded = wire::Message {
        status: view.status as u8,
        tokens: view.tokens,
        is_estimated: view.is_estimated,
        id: view.id,
        role: view.role,
        from: view.from,
        metadata: view.metadata,
        parts: view.parts,
    };
    (message.seq, message.at_ms, encoded)
}

//! Conversations on one connection: APPEND, READ and FOLLOW frames, and the answers.

use std::task::Waker;

use conversation_service::{Batch, ConversationRef, MessageRange, NewMessage, PartFact};
use message_json::facts::PARTS_MAX;
use message_json::{facts, metadata};
use messaging::Turn;
use routing::Ticket;
use smallvec::SmallVec;
use store::Range;
use wire::Append;

use super::answers::{Answer, Answers};
use super::deferred::{Deferred, conversations};
use super::errors::ErrorAnswer;
use super::fatal::Fatal;

/// The parts of a connection that an append uses.
pub(super) struct Appender<'a> {
    pub(super) node: &'a node::Node,
    pub(super) answers: &'a mut Answers,
    pub(super) deferred: &'a mut Deferred,
    /// Memory for the facts of the messages, which is reused.
    pub(super) facts: &'a mut Vec<PartFact>,
}

/// Appends the messages of an APPEND, all or none.
pub(super) fn append(
    appender: Appender<'_>,
    turn: &mut Turn<'_>,
    tag: Ticket,
    conversation: &mut ConversationRef,
    append: &Append<'_>,
) -> Result<(), Fatal> {
    let Appender {
        node,
        answers,
        deferred,
        facts,
    } = appender;
    facts.clear();
    facts.shrink_to(PARTS_MAX);
    let mut messages: SmallVec<[_; 1]> = SmallVec::new();
    for (index, record) in append.records().enumerate() {
        let message = wire::NewMessage::decode(record)?;
        let read = facts::extract(message.parts, facts).map_err(|error| error.to_string());
        let checked = metadata::check(message.metadata).map_err(|error| error.to_string());
        if let Err(error) = read.and(checked) {
            let message = format!("message {index}: {error}");
            answers.fail(tag, ErrorAnswer::invalid(message));
            return Ok(());
        }
        messages.push((message, facts.len()));
    }
    let mut begin = 0;
    let messages: SmallVec<[_; 1]> = messages
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
    let charge = match turn.admit_append(batch.size() as u64) {
        Ok(charge) => charge,
        Err(throttled) => {
            answers.fail(tag, throttled);
            return Ok(());
        }
    };
    // Locks of conversations come before the table's lock.
    turn.unlock_table();
    let appended = match deferred.has_conversations() {
        true => Ok(None),
        false => conversations(node).and_then(|conversations| {
            conversations.append_in_round(conversation, batch, turn.context())
        }),
    };
    match appended {
        Ok(Some(pending)) => answers.push(tag, charge, Answer::Messages(pending), batch.size()),
        Ok(None) => deferred.append(answers, tag, conversation, batch, charge),
        Err(refusal) => answers.fail(tag, refusal),
    }
    Ok(())
}

/// Reads durable messages. They are sent at once, or after they were read from the disk or the
/// archive.
pub(super) fn read(
    node: &node::Node,
    answers: &mut Answers,
    deferred: &mut Deferred,
    tag: Ticket,
    conversation: &ConversationRef,
    range: Range,
) {
    let range = message_range(range);
    let read = conversations(node)
        .and_then(|conversations| conversations.read_after_at_once(conversation.name(), range));
    match read {
        // The waker of the task is registered when the deferred requests are polled.
        Ok(Some(page)) => deferred.send_page(answers, tag, page, Waker::noop()),
        Ok(None) => deferred.read_messages(answers, tag, conversation, range),
        Err(refusal) => answers.fail(tag, refusal),
    }
}

/// Returns the messages of a range of sequence numbers.
pub(super) fn message_range(range: Range) -> MessageRange {
    MessageRange {
        after: range.from.saturating_sub(1),
        messages_max: range.records_max,
        bytes_max: range.bytes_max,
    }
}

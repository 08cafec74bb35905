//! Answers and items with records of streams and messages of conversations.

use conversation_service::{ConversationError, Message, PageRead};
use routing::Ticket;
use store::StreamExtract;
use wire::{Extract, Flags, Record};

use super::answers::Answers;
use super::outlet::correlation;

/// Sends records of a stream. `more` is true if other items follow.
pub(super) fn send_records(answers: &mut Answers, tag: Ticket, more: bool, read: &StreamExtract) {
    let records = read.records().map(|record| Record {
        offset: record.offset,
        time_ms: record.time_ms,
        bytes: record.bytes,
    });
    let flags = if more { Flags::MORE } else { Flags::NONE };
    let (start, next) = (read.start(), read.next());
    answers.send(|out| Extract::encode(start, next, records, flags, correlation(tag), out));
}

/// Sends the answer to a READ.
pub(super) fn send_read(
    answers: &mut Answers,
    tag: Ticket,
    read: Result<PageRead, ConversationError>,
) {
    if let Err(refusal) = read.and_then(|read| send_page(answers, tag, false, &read)) {
        answers.fail(tag, refusal);
    }
}

/// Sends messages. `more` is true if other items follow.
pub(super) fn send_page(
    answers: &mut Answers,
    tag: Ticket,
    more: bool,
    read: &PageRead,
) -> Result<(), ConversationError> {
    let messages = read.messages().collect::<Result<Vec<_>, _>>()?;
    let flags = if more { Flags::MORE } else { Flags::NONE };
    let (start, next) = (read.start_seq, read.head_seq + 1);
    let messages = messages.iter().map(encoded);
    answers.send(|out| {
        wire::Message::encode_extract(start, next, messages, flags, correlation(tag), out);
    });
    Ok(())
}

/// Returns a message as it is encoded, with its sequence number and its time.
fn encoded<'m>(message: &Message<'m>) -> (u64, u64, wire::Message<'m>) {
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

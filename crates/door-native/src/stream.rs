//! Raw streams on one connection: APPEND, READ and FOLLOW frames, and the answers.

use messaging::Turn;
use routing::Ticket;
use store::{Range, Stream, StreamError, Streams};
use wire::Append;

use super::answers::{Answer, Answers};
use super::deferred::Deferred;
use super::extracts::send_records;

/// Appends records to a stream.
pub(super) fn append(
    node: &node::Node,
    turn: &mut Turn<'_>,
    answers: &mut Answers,
    tag: Ticket,
    stream: &mut Stream,
    append: &Append<'_>,
) {
    let size = append.records().map(<[u8]>::len).sum::<usize>();
    let charge = match turn.admit_append(size as u64) {
        Ok(charge) => charge,
        Err(throttled) => return answers.fail(tag, throttled),
    };
    match streams(node).and_then(|streams| {
        streams.append(stream, append.expected, append.records(), turn.context())
    }) {
        Ok(pending) => answers.push(tag, charge, Answer::Append(pending), size),
        Err(error) => answers.fail(tag, error),
    }
}

/// Reads durable records of a stream. The answer is sent at once, or after a read from the disk.
pub(super) fn read(
    node: &node::Node,
    answers: &mut Answers,
    deferred: &mut Deferred,
    tag: Ticket,
    stream: &Stream,
    range: Range,
) {
    match streams(node).and_then(|streams| streams.read_at_once(stream, range)) {
        Ok(Some(read)) => send_records(answers, tag, false, &read),
        Ok(None) => deferred.read_stream(answers, tag, stream, range),
        Err(error) => answers.fail(tag, error),
    }
}

/// Returns the node's streams.
pub(super) fn streams(node: &node::Node) -> Result<&Streams, StreamError> {
    node.streams().ok_or(StreamError::NoStorage)
}

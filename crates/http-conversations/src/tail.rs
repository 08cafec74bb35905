//! Messages as server-sent events: existing ones, then new ones.
//!
//! Events are read from the node only when the connection has room. A client that does not read
//! costs one read-ahead of memory.

use std::ops::ControlFlow;
use std::task::{Context, Poll};

use axum::http::HeaderMap;
use axum::response::Response;
use conversation_service::{ConversationError, Item, Position, Watch};
use http_api::sse::{FRAME_SIZE, KEEPALIVE, Source, break_lines, last_event_id, pulled};
use http_api::{Problem, Shared};
use model::Name;

use super::outgoing::{push, push_display, push_message, push_number};
use super::place::of;

/// Answers with the events after `after` or `Last-Event-ID`.
pub(super) fn follow(
    shared: &Shared,
    name: &Name,
    after: u64,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let position = last_event_id(headers)?.unwrap_or(Position {
        seq: after,
        drafts: Vec::new(),
    });
    let watch = of(shared)?.watch_from(name, position)?;
    Ok(pulled(MessageEvents(watch), KEEPALIVE))
}

/// The messages of a watch, as the source of an event stream.
struct MessageEvents(Watch);

impl Source for MessageEvents {
    fn gather(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> ControlFlow<()> {
        while out.len() < FRAME_SIZE {
            let Self(watch) = self;
            let Poll::Ready(item) = watch.poll_next(cx) else {
                break;
            };
            if let Err(refusal) = item.and_then(|item| push_item(out, watch.position(), &item)) {
                push_error(out, refusal);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

/// Appends an event. Its id is the watcher's position after it.
fn push_item(out: &mut Vec<u8>, position: &Position, item: &Item) -> Result<(), ConversationError> {
    push(out, b"id: ");
    push_display(out, position);
    match item {
        Item::Message(stored) => {
            let view = stored.view()?;
            push(out, b"\nevent: message\ndata: ");
            let begin = out.len();
            push_message(out, stored.seq, stored.at_ms, &view);
            break_lines(out, begin);
        }
        Item::Head { head_seq } => {
            push(out, b"\nevent: head\ndata: {\"head_seq\":");
            push_number(out, *head_seq);
            push(out, b"}");
        }
        Item::Cleared { through_seq } => {
            push(out, b"\nevent: cleared\ndata: {\"cleared_seq\":");
            push_number(out, *through_seq);
            push(out, b"}");
        }
        Item::Retracted {
            first_seq,
            last_seq,
        } => {
            push(out, b"\nevent: retracted\ndata: ");
            push_retracted(out, *first_seq, *last_seq);
        }
        Item::Delta {
            draft,
            id,
            index,
            chunk,
        } => {
            push(out, b"\nevent: delta\ndata: ");
            let begin = out.len();
            push_delta(out, *draft, id, *index, chunk);
            break_lines(out, begin);
        }
        Item::Stop { draft, id } => {
            push(out, b"\nevent: stop\ndata: ");
            push_stop(out, *draft, id);
        }
        Item::Closed { draft, last } => {
            push(out, b"\nevent: closed\ndata: ");
            let begin = out.len();
            push_closed(out, *draft, last.as_deref());
            break_lines(out, begin);
        }
    }
    push(out, b"\n\n");
    Ok(())
}

/// Appends the range of numbers that a retraction left without a message.
pub(super) fn push_retracted(out: &mut Vec<u8>, first_seq: u64, last_seq: u64) {
    push(out, b"{\"first_seq\":");
    push_number(out, first_seq);
    push(out, b",\"last_seq\":");
    push_number(out, last_seq);
    push(out, b"}");
}

/// Appends a chunk of a message that is being streamed.
pub(super) fn push_delta(out: &mut Vec<u8>, draft: u64, id: &str, index: u32, chunk: &[u8]) {
    push(out, b"{\"draft\":");
    push_number(out, draft);
    // An id has only characters that need no escape.
    push(out, b",\"mid\":\"");
    push(out, id.as_bytes());
    push(out, b"\",\"index\":");
    push_number(out, u64::from(index));
    push(out, b",\"chunk\":");
    push(out, chunk);
    push(out, b"}");
}

/// Appends the request to stop a draft.
pub(super) fn push_stop(out: &mut Vec<u8>, draft: u64, id: &str) {
    push(out, b"{\"draft\":");
    push_number(out, draft);
    push(out, b",\"mid\":\"");
    push(out, id.as_bytes());
    push(out, b"\"}");
}

/// Appends the end of a draft, with the chunk that ended it.
pub(super) fn push_closed(out: &mut Vec<u8>, draft: u64, last: Option<&[u8]>) {
    push(out, b"{\"draft\":");
    push_number(out, draft);
    if let Some(chunk) = last {
        push(out, b",\"chunk\":");
        push(out, chunk);
    }
    push(out, b"}");
}

/// Appends the `error` event, which is the last of the stream. The client may reconnect.
fn push_error(out: &mut Vec<u8>, refusal: ConversationError) {
    push(out, b"event: error\ndata: ");
    push(
        out,
        Problem::from(refusal).document().to_string().as_bytes(),
    );
    push(out, b"\n\n");
}

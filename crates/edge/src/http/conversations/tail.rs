//! Messages as server-sent events: those that are there, then those that come.
//!
//! The body pulls: an event is read from the node when the connection has room for it, so that a
//! client that does not read costs what one read ahead takes, and nothing more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use http_body::Frame;
use model::Name;
use node::conversations::{Item, Position, Refusal, Watch};
use tokio::time::{Instant, Sleep};

use super::outgoing::{push, push_display, push_message, push_number};
use super::place::of;
use crate::http::Shared;
use crate::http::problem::Problem;
use crate::http::sse::{FRAME_SIZE, KEEPALIVE, break_lines, last_event_id, respond};

/// Answers with the events behind `after`, or behind `Last-Event-ID`.
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
    let events = Events {
        watch: Some(watch),
        keepalive: Box::pin(tokio::time::sleep(KEEPALIVE)),
    };
    Ok(respond(Body::new(events)))
}

/// See the module's documentation.
struct Events {
    /// Until it has ended.
    watch: Option<Watch>,
    keepalive: Pin<Box<Sleep>>,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Some(watch) = &mut this.watch else {
            return Poll::Ready(None);
        };
        let mut out = Vec::new();
        while out.len() < FRAME_SIZE {
            match watch.poll_next(cx) {
                Poll::Pending => break,
                Poll::Ready(item) => {
                    if let Err(refusal) =
                        item.and_then(|item| push_item(&mut out, watch.position(), &item))
                    {
                        push_error(&mut out, refusal);
                        this.watch = None;
                        break;
                    }
                }
            }
        }
        if out.is_empty() {
            std::task::ready!(this.keepalive.as_mut().poll(cx));
            push(&mut out, b":\n\n");
        }
        this.keepalive.as_mut().reset(Instant::now() + KEEPALIVE);
        // Nobody has registered for the new moment yet.
        let _ = this.keepalive.as_mut().poll(cx);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))))
    }
}

/// Appends an event; its id is where the watcher has arrived with it.
fn push_item(out: &mut Vec<u8>, position: &Position, item: &Item) -> Result<(), Refusal> {
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
            push_draft(out, *draft, Some(id));
        }
        Item::Closed { draft } => {
            push(out, b"\nevent: closed\ndata: ");
            push_draft(out, *draft, None);
        }
    }
    push(out, b"\n\n");
    Ok(())
}

/// A piece of a message that is being streamed.
pub(super) fn push_delta(out: &mut Vec<u8>, draft: u64, id: &str, index: u32, chunk: &[u8]) {
    push(out, b"{\"draft\":");
    push_number(out, draft);
    // An id is of letters and digits and what needs no escape.
    push(out, b",\"mid\":\"");
    push(out, id.as_bytes());
    push(out, b"\",\"index\":");
    push_number(out, u64::from(index));
    push(out, b",\"chunk\":");
    push(out, chunk);
    push(out, b"}");
}

/// A draft that is to stop, or is over.
pub(super) fn push_draft(out: &mut Vec<u8>, draft: u64, id: Option<&str>) {
    push(out, b"{\"draft\":");
    push_number(out, draft);
    if let Some(id) = id {
        push(out, b",\"mid\":\"");
        push(out, id.as_bytes());
        push(out, b"\"");
    }
    push(out, b"}");
}

/// The last event: the client asks again from where it was, or does not.
fn push_error(out: &mut Vec<u8>, refusal: Refusal) {
    push(out, b"event: error\ndata: ");
    push(
        out,
        Problem::from(refusal).document().to_string().as_bytes(),
    );
    push(out, b"\n\n");
}

//! Server-sent events: the common parts of all event streams.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use http_body::Frame;
use tokio::time::{Instant, Sleep};

use crate::problem::Problem;

/// Events are collected up to this size, in bytes, before they are written.
pub const FRAME_SIZE: usize = 32 << 10;

/// Interval of comments on an idle stream, which keep proxies from closing it.
pub const KEEPALIVE: Duration = Duration::from_secs(15);

/// A source of events that is read when the connection has room.
pub trait Source: Send + Unpin + 'static {
    /// Appends the available events, up to about [`FRAME_SIZE`] bytes. Breaks after the last event.
    /// If no event is available, the task is woken when one may be.
    fn gather(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> ControlFlow<()>;
}

/// Answers with the events of a source. Idle streams send comments, the first one after
/// `first_comment`.
pub fn pulled(source: impl Source, first_comment: Duration) -> Response {
    respond(Body::new(Pulled {
        source: Some(source),
        keepalive: Box::pin(tokio::time::sleep(first_comment)),
    }))
}

struct Pulled<S> {
    /// `None` after the stream has ended.
    source: Option<S>,
    keepalive: Pin<Box<Sleep>>,
}

impl<S: Source> http_body::Body for Pulled<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let Some(source) = &mut this.source else {
            return Poll::Ready(None);
        };
        let mut out = Vec::new();
        if source.gather(cx, &mut out).is_break() {
            this.source = None;
        }
        if out.is_empty() {
            ready!(this.keepalive.as_mut().poll(cx));
            out.extend_from_slice(b":\n\n");
        }
        this.keepalive.as_mut().reset(Instant::now() + KEEPALIVE);
        // Registers the task for the new deadline.
        let _ = this.keepalive.as_mut().poll(cx);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))))
    }
}

/// Answers with an event stream that proxies must not cache or buffer.
pub fn respond(events: Body) -> Response {
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (head, events).into_response()
}

/// Returns the id of the last received event from `Last-Event-ID`.
pub fn last_event_id<T: FromStr>(headers: &HeaderMap) -> Result<Option<T>, Problem> {
    const NAME: HeaderName = HeaderName::from_static("last-event-id");
    let Some(value) = headers.get(NAME) else {
        return Ok(None);
    };
    let id = value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let wrong = || Problem::invalid("`last-event-id` is not an event id of this stream");
    id.map(Some).ok_or_else(wrong)
}

/// Splits JSON with line breaks between its tokens into several `data` fields.
pub fn break_lines(out: &mut Vec<u8>, begin: usize) {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !out[begin..].iter().any(is_end) {
        return;
    }
    let data = out.split_off(begin);
    for byte in data {
        match byte {
            b'\n' => out.extend_from_slice(b"\ndata: "),
            b'\r' => {}
            byte => out.push(byte),
        }
    }
}

//! What every stream of server-sent events has in common.

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

use super::problem::Problem;

/// Events are gathered up to this size before they are written.
pub(super) const FRAME_SIZE: usize = 32 << 10;

/// Where nothing happens, a comment comes that often, so that nobody in between gives up.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);

/// Events that are pulled: they are looked for when the connection has room for them.
pub(super) trait Source: Send + Unpin + 'static {
    /// Appends what has come, up to about [`FRAME_SIZE`], and breaks with the last event. If nothing has,
    /// the task is woken when something may have.
    fn gather(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> ControlFlow<()>;
}

/// Answers with the events of a source, and with a comment where nothing happens, first after that time.
pub(super) fn pulled(source: impl Source, first_comment: Duration) -> Response {
    respond(Body::new(Pulled {
        source: Some(source),
        keepalive: Box::pin(tokio::time::sleep(first_comment)),
    }))
}

struct Pulled<S> {
    /// Until it has ended.
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
        // Nobody has registered for the new moment yet.
        let _ = this.keepalive.as_mut().poll(cx);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))))
    }
}

/// Answers with events that nobody in between may keep or gather.
pub(super) fn respond(events: Body) -> Response {
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (head, events).into_response()
}

/// Behind which event a client goes on, if it says so.
pub(super) fn last_event_id<T: FromStr>(headers: &HeaderMap) -> Result<Option<T>, Problem> {
    const NAME: HeaderName = HeaderName::from_static("last-event-id");
    let Some(value) = headers.get(NAME) else {
        return Ok(None);
    };
    let id = value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let wrong = || Problem::invalid("`last-event-id` is no id of an event of this stream");
    id.map(Some).ok_or_else(wrong)
}

/// Between tokens JSON may have ends of lines; an event's data have each line in a field of its own.
pub(super) fn break_lines(out: &mut Vec<u8>, begin: usize) {
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

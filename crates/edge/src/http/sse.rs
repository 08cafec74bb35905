//! What every stream of server-sent events has in common.

use std::str::FromStr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};

use super::problem::Problem;

/// Events are gathered up to this size before they are written.
pub(super) const FRAME_SIZE: usize = 32 << 10;

/// Where nothing happens, a comment comes that often, so that nobody in between gives up.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);

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

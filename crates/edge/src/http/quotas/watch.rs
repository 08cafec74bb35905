//! `GET /v1/watch`: what happens to quotas, as server-sent events.
//!
//! The body pulls, so that whoever does not read costs nothing, and is told how many events he has
//! missed. An event's id is its number in this run of the node, from which `Last-Event-ID` goes on.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use http_body::Frame;
use model::ErrorCode;
use node::quotas::{Event, EventKind, Watch, Watched};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};

use super::admin::moment;
use crate::http::Shared;
use crate::http::openapi::ProblemDocument;
use crate::http::problem::Problem;
use crate::http::sse::{FRAME_SIZE, KEEPALIVE, last_event_id, respond};

/// Watch: denials, thresholds that were crossed, and changes of limits.
#[utoipa::path(
    get, path = "/v1/watch", tag = "quotas", operation_id = "watch_quotas",
    params(("Last-Event-ID" = Option<u64>, Header, description = "Go on behind that event")),
    responses(
        (status = 200, description = "Events, for as long as somebody reads", body = String,
            content_type = "text/event-stream"),
        (status = 503, description = "As many watch as may", body = ProblemDocument),
    )
)]
pub(super) async fn watch(
    State(shared): State<Shared>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let quotas = shared.node.quotas();
    let watch = match last_event_id::<u64>(&headers)? {
        Some(number) => quotas.watch_from(number.saturating_add(1)),
        None => quotas.watch(),
    };
    let watch = watch.ok_or_else(|| Problem::of(ErrorCode::Busy, "as many watch as may"))?;
    let events = Events {
        watch,
        keepalive: Box::pin(tokio::time::sleep(Duration::ZERO)),
    };
    Ok(respond(Body::new(events)))
}

struct Events {
    watch: Watch,
    /// The first comment comes at once: whoever reads it knows that it watches.
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
        let mut out = String::new();
        while out.len() < FRAME_SIZE {
            match this.watch.next(cx.waker()) {
                Some(watched) => push(&mut out, &watched),
                None => break,
            }
        }
        if out.is_empty() {
            std::task::ready!(this.keepalive.as_mut().poll(cx));
            out.push_str(":\n\n");
        }
        this.keepalive.as_mut().reset(Instant::now() + KEEPALIVE);
        // Nobody has registered for the new moment yet.
        let _ = this.keepalive.as_mut().poll(cx);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))))
    }
}

fn push(out: &mut String, watched: &Watched) {
    match watched {
        Watched::Event(event) => {
            let (kind, data) = shown(event);
            out.push_str(&format!(
                "id: {}\nevent: {kind}\ndata: {data}\n\n",
                event.number
            ));
        }
        Watched::Missed(count) => {
            out.push_str(&format!("event: missed\ndata: {{\"count\":{count}}}\n\n"));
        }
    }
}

/// What happened, in a word, and to whom.
fn shown(event: &Event) -> (&'static str, Value) {
    let mut data = json!({"at": moment(event.at_ns), "about": event.about});
    let kind = match &event.kind {
        EventKind::Denied { limit } => {
            data["limit"] = json!(limit.as_ref());
            "denied"
        }
        EventKind::Threshold { limit, share } => {
            data["limit"] = json!(limit.as_ref());
            data["share"] = json!(f64::from(*share) / 1_000.0);
            "threshold"
        }
        EventKind::Policies => "policies",
        EventKind::Factor => "factor",
        EventKind::Halted => "halted",
        EventKind::Resumed => "resumed",
        EventKind::Override => "override",
        EventKind::OverrideEnded => "override-ended",
        EventKind::Reset => "reset",
    };
    (kind, data)
}

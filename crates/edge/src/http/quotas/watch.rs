//! `GET /v1/watch`: what happens to quotas, as server-sent events.
//!
//! The body pulls, so that whoever does not read costs nothing, and is told how many events he has
//! missed. An event's id is its number in this run of the node, from which `Last-Event-ID` goes on.

use std::ops::ControlFlow;
use std::task::Context;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use model::ErrorCode;
use node::quotas::{Event, EventKind, Watch, Watched};
use serde_json::{Value, json};

use super::admin::moment;
use crate::http::Shared;
use crate::http::openapi::ProblemDocument;
use crate::http::problem::Problem;
use crate::http::sse::{FRAME_SIZE, Source, last_event_id, pulled};

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
    // The first comment comes at once: whoever reads it knows that it watches.
    Ok(pulled(watch, Duration::ZERO))
}

impl Source for Watch {
    fn gather(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> ControlFlow<()> {
        while out.len() < FRAME_SIZE {
            match self.next(cx.waker()) {
                Some(watched) => push(out, &watched),
                None => break,
            }
        }
        ControlFlow::Continue(())
    }
}

fn push(out: &mut Vec<u8>, watched: &Watched) {
    let text = match watched {
        Watched::Event(event) => {
            let (kind, data) = shown(event);
            format!("id: {}\nevent: {kind}\ndata: {data}\n\n", event.number)
        }
        Watched::Missed(count) => format!("event: missed\ndata: {{\"count\":{count}}}\n\n"),
    };
    out.extend_from_slice(text.as_bytes());
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

//! `GET /v1/watch`: quota events as server-sent events.
//!
//! Events are read only when the connection has room. A client that does not read costs nothing and
//! is informed of the number of missed events. The id of an event is its number since the node's
//! start; `Last-Event-ID` continues after it.

use std::ops::ControlFlow;
use std::task::Context;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::Shared;
use http_api::sse::{FRAME_SIZE, Source, last_event_id, pulled};
use model::ErrorCode;
use quota_service::{Event, EventKind, Watch, WatchItem};
use serde_json::{Value, json};

use super::admin::moment;

/// Watch denials, crossed thresholds, and changes of limits.
#[utoipa::path(
    get, path = "/v1/watch", tag = "quotas", operation_id = "watch_quotas",
    params(("Last-Event-ID" = Option<u64>, Header, description = "Id of the last received event; the stream continues after it")),
    responses(
        (status = 200, description = "An endless stream of events", body = String,
            content_type = "text/event-stream"),
        (status = 503, description = "Too many watchers", body = ProblemDocument),
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
    let watch =
        watch.ok_or_else(|| Problem::of(ErrorCode::Busy, "too many watchers on this node"))?;
    // The first comment is sent at once, so that the client knows that the watch is active.
    Ok(pulled(QuotaEvents(watch), Duration::ZERO))
}

/// The events of a watch, as the source of an event stream.
struct QuotaEvents(Watch);

impl Source for QuotaEvents {
    fn gather(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> ControlFlow<()> {
        while out.len() < FRAME_SIZE {
            match self.0.next(cx.waker()) {
                Some(item) => push(out, &item),
                None => break,
            }
        }
        ControlFlow::Continue(())
    }
}

fn push(out: &mut Vec<u8>, item: &WatchItem) {
    let text = match item {
        WatchItem::Event(event) => {
            let (kind, data) = shown(event);
            format!("id: {}\nevent: {kind}\ndata: {data}\n\n", event.number)
        }
        WatchItem::Missed(count) => format!("event: missed\ndata: {{\"count\":{count}}}\n\n"),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Returns the type and the data of an event.
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

//! `POST /v1/settle`: ends a hold with its actual cost.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use door::FOREIGN_HOLD;
use http_api::Client;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::Shared;
use http_api::body::{self, wrong_at};
use http_api::reply::{JSON, Reply};
use json::Text;
use model::ErrorCode;
use quota::Settled;
use quota_service::{Desk, SettleOutcome};
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{parse_hold, push_limit_states};
use super::take::Costs;

const BODY_SIZE_MAX: usize = 16 << 10;

/// The end of a hold.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Settle)]
pub(crate) struct SettleDocument<'a> {
    /// Id of the hold from the answer to the take: 32 hexadecimal digits.
    #[serde(borrow)]
    #[schema(value_type = String)]
    hold: Text<'a>,
    /// The actual cost. A unit that is not named costs what was reserved. `{}` cancels the hold: it
    /// costs nothing.
    #[schema(schema_with = super::take::cost_schema)]
    cost: Costs,
}

/// End a hold with its actual cost, or cancel it.
///
/// A cost above the available credit becomes debt. A hold that has ended already cannot end again;
/// `settled` is false then.
#[utoipa::path(
    post, path = "/v1/settle", tag = "quotas", operation_id = "settle",
    request_body = SettleDocument,
    responses(
        (status = 200, description = "The hold has ended", body = Object),
        (status = 400, description = "The request is invalid", body = ProblemDocument),
        (status = 403, description = "The hold belongs to another principal", body = ProblemDocument),
        (status = 503, description = "The hold has ended, but the write is not confirmed: it may be open again after a crash", body = ProblemDocument),
    )
)]
pub(super) async fn settle(
    State(shared): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<impl IntoResponse, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: SettleDocument<'_> = body::parse(&body)?;
    let hold = parse_hold(&document.hold.0);
    let hold = hold.ok_or_else(|| wrong_at("hold", "must be 32 hexadecimal digits"))?;
    let costs = document.cost.0;
    let settled = match costs.is_empty() {
        true => Settled::Cancelled,
        false => Settled::Cost(&costs),
    };
    let mut desk = Desk::new();
    let quotas = shared.node.quotas();
    let settling = quotas.settle(&mut desk, hold, settled, client.requester());
    if settling.outcome == SettleOutcome::Denied {
        return Err(Problem::of(ErrorCode::Denied, FOREIGN_HOLD));
    }
    let mut reply = Reply::default();
    reply.clear(StatusCode::OK, JSON);
    let was_held = settling.outcome == SettleOutcome::Settled;
    reply.body.extend_from_slice(br#"{"settled":"#);
    reply
        .body
        .extend_from_slice(if was_held { b"true" } else { b"false" });
    if was_held {
        push_limit_states(&mut reply.body, desk.limit_states(), desk.now_ns());
    }
    reply.body.push(b'}');
    if let Some(reason) = settling.failed {
        return Err(Problem::of(ErrorCode::Unconfirmed, reason));
    }
    if let Some(durable) = settling.durable {
        durable.await.map_err(super::errors::not_durable)?;
    }
    Ok(reply)
}

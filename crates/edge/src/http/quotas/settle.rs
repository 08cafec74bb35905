//! `POST /v1/settle`: what a hold truly cost.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use model::ErrorCode;
use node::quotas::{Desk, Settled};
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{parse_hold, push_standings};
use super::take::Costs;
use crate::http::Shared;
use crate::http::body::{self, wrong_at};
use crate::http::openapi::ProblemDocument;
use crate::http::problem::Problem;
use crate::http::reply::{JSON, Reply};
use crate::json::Text;

const BODY_SIZE_MAX: usize = 16 << 10;

/// The end of a hold.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Settle)]
pub(crate) struct SettleDocument<'a> {
    /// As the take was answered.
    #[serde(borrow)]
    #[schema(value_type = String)]
    hold: Text<'a>,
    /// What it truly cost. Of a unit that is not named it cost what was reserved; of none at all, `{}`,
    /// nothing: the hold is cancelled.
    #[schema(schema_with = super::take::cost_schema)]
    cost: Costs,
}

/// End a hold with what it truly cost, or cancel it.
///
/// What is not there becomes debt. One that has ended, by whatever, ends no second time: `settled` is
/// false then.
#[utoipa::path(
    post, path = "/v1/settle", tag = "quotas", operation_id = "settle",
    request_body = SettleDocument,
    responses(
        (status = 200, description = "It has ended", body = Object),
        (status = 400, description = "Something in the request is wrong", body = ProblemDocument),
        (status = 503, description = "It has ended, and may be held again after a crash", body = ProblemDocument),
    )
)]
pub(super) async fn settle(
    State(shared): State<Shared>,
    headers: HeaderMap,
    body: Body,
) -> Result<impl IntoResponse, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: SettleDocument<'_> = body::parse(&body)?;
    let hold = parse_hold(&document.hold.0);
    let hold = hold.ok_or_else(|| wrong_at("hold", "a hold is named by 16 hexadecimal digits"))?;
    let costs = document.cost.0;
    let settled = match costs.is_empty() {
        true => Settled::Cancelled,
        false => Settled::Cost(&costs),
    };
    let mut desk = Desk::new();
    let settling = shared.node.quotas().settle(&mut desk, hold, settled);
    let mut reply = Reply::default();
    reply.clear(StatusCode::OK, JSON);
    let was_held = settling.was_held;
    reply.body.extend_from_slice(br#"{"settled":"#);
    reply
        .body
        .extend_from_slice(if was_held { b"true" } else { b"false" });
    if was_held {
        push_standings(&mut reply.body, desk.standings(), desk.now_ns());
    }
    reply.body.push(b'}');
    if let Some(reason) = settling.failed {
        return Err(Problem::of(ErrorCode::Unconfirmed, reason));
    }
    if let Some(durable) = settling.durable {
        durable.await.map_err(|_| super::unconfirmed())?;
    }
    Ok(reply)
}

//! Quota views: the limits of one subject, and the largest consumers.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::Shared;
use http_api::reply::{JSON, Reply};
use model::ErrorCode;
use quota::Subject;
use quota_service::{Desk, Outcome, TopBy};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::answer::{push_limit_states, push_text};
use super::asks;

/// Default number of rows of a list.
const ROWS: usize = 20;

/// Query parameter of a run.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct InRun {
    /// Run whose limits are shown, too.
    #[serde(default)]
    run: String,
}

/// Get the state of every limit that applies to a subject. Takes nothing and creates nothing.
#[utoipa::path(
    get, path = "/v1/quota/{org}/{namespace}/{agent}", tag = "quotas", operation_id = "peek",
    params(("agent" = String, Path, description = "Name of the agent"), InRun),
    responses(
        (status = 200, description = "The limits of the subject", body = Object),
        (status = 400, description = "The subject is invalid", body = ProblemDocument),
        (status = 503, description = "The shared store of the limits does not answer", body = ProblemDocument),
    )
)]
pub(super) async fn peek(
    State(shared): State<Shared>,
    Path((org, namespace, agent)): Path<(String, String, String)>,
    Query(InRun { run }): Query<InRun>,
) -> Result<impl IntoResponse, Problem> {
    let name = format!("{org}/{namespace}/{agent}");
    let subject = Subject::new(&name, &run);
    let subject = subject.map_err(|error| Problem::invalid(error.to_string()))?;
    let mut desk = Desk::new();
    if let Some(parked) = shared.node.quotas().peek(&mut desk, &subject) {
        let looked = asks::decided(parked, &mut desk).await;
        if let Outcome::Unavailable { reason } = looked.outcome {
            return Err(Problem::of(ErrorCode::Unavailable, reason));
        }
    }
    let mut reply = Reply::default();
    reply.clear(StatusCode::OK, JSON);
    reply.body.extend_from_slice(br#"{"subject":"#);
    push_text(&mut reply.body, &subject.to_string());
    push_limit_states(&mut reply.body, desk.limit_states(), desk.now_ns());
    reply.body.push(b'}');
    Ok(reply)
}

/// Query parameters of the largest consumers.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TopQuery {
    /// `taken` (credit in use now), `denied` (denied takes since the node's start) or `debt`.
    #[serde(default)]
    #[param(inline)]
    by: By,
    /// Most rows; default 20, at most 1000.
    count: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TopBy)]
pub(crate) enum By {
    #[default]
    Taken,
    Denied,
    Debt,
}

/// List the subjects that take most, owe most, or are denied most.
#[utoipa::path(
    get, path = "/v1/top", tag = "quotas", operation_id = "top_quotas",
    params(TopQuery),
    responses((status = 200, description = "Rows in descending order", body = Object))
)]
pub(super) async fn top(
    State(shared): State<Shared>,
    Query(query): Query<TopQuery>,
) -> Result<Json<Value>, Problem> {
    let by = match query.by {
        By::Taken => TopBy::Taken,
        By::Denied => TopBy::Denied,
        By::Debt => TopBy::Debt,
    };
    let count = query.count.unwrap_or(ROWS);
    // The ranking reads every bucket.
    let rows = http_api::off_thread(move || Ok(shared.node.quotas().top(by, count))).await?;
    let rows: Vec<_> = rows
        .iter()
        .map(|row| json!({"name": row.name, "limit": row.limit.as_deref(), "count": row.count}))
        .collect();
    Ok(Json(json!({ "rows": rows })))
}

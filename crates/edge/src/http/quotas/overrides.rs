//! Another capacity or refill for one prefix, for a time: somebody may have more, and it is known why.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use node::config::duration;
use node::quotas::{Override, parse_refill};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::admin::{BODY_SIZE_MAX, applied, end_ns, moment, prefix, refused};
use super::bearer::Admin;
use crate::http::Shared;
use crate::http::body::{self, wrong_at};
use crate::http::openapi::ProblemDocument;
use crate::http::problem::Problem;

/// What stands instead of a limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Override)]
pub(crate) struct OverrideDocument {
    /// Which limit.
    limit: String,
    /// For whom: as many parts as the limit's pattern has.
    #[schema(example = "acme/research/agent-42")]
    prefix: String,
    /// What there is at most, instead.
    capacity: Option<u64>,
    /// What comes back, instead.
    #[schema(example = "50/s")]
    refill: Option<String>,
    /// Given once, now, beyond what there is.
    #[serde(default)]
    grant: u64,
    /// For how long; for good if neither this nor `until` is said.
    #[serde(rename = "for")]
    #[schema(example = "2h")]
    lasting: Option<String>,
    /// Until when (RFC 3339).
    until: Option<String>,
    /// Why.
    reason: String,
}

/// Which one, and why.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Which limit.
    limit: String,
    /// For whom.
    prefix: String,
    /// Why.
    reason: String,
}

/// What stands instead of limits.
#[utoipa::path(
    get, path = "/v1/overrides", tag = "quotas", operation_id = "list_overrides",
    responses((status = 200, description = "By limit and prefix", body = Object))
)]
pub(super) async fn list(State(shared): State<Shared>) -> Json<Value> {
    let quotas = shared.node.quotas();
    let (rules, now_ns) = (quotas.rules(), quotas.now_ns());
    let standing = rules.overrides().iter();
    let shown = standing.filter_map(|((limit, prefix), change)| {
        let index = rules.policies().index(*limit)?;
        let name = &rules.limit(index).name;
        let prefix = match prefix.split_once('?') {
            Some((name, run)) => format!("{name}?run={run}"),
            None => prefix.to_string(),
        };
        // One that has ended is forgotten with the next that is made.
        (now_ns < change.until_ns).then(|| shown(name, &prefix, change))
    });
    Json(json!({ "overrides": shown.collect::<Vec<_>>() }))
}

/// Have something else stand for one prefix.
#[utoipa::path(
    put, path = "/v1/overrides", tag = "quotas", operation_id = "put_override",
    request_body = OverrideDocument,
    responses(
        (status = 200, description = "It stands, and is on disk", body = Object),
        (status = 400, description = "It makes no sense for that limit", body = ProblemDocument),
        (status = 403, description = "Only an administrator may", body = ProblemDocument),
        (status = 404, description = "There is no such limit", body = ProblemDocument),
    )
)]
pub(super) async fn put(
    State(shared): State<Shared>,
    admin: Admin,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: OverrideDocument = body::parse(&body)?;
    if document.capacity.is_none() && document.refill.is_none() && document.grant == 0 {
        let detail = "say `capacity`, `refill` or `grant`";
        return Err(Problem::invalid(detail));
    }
    let refill = document.refill.as_deref().map(parse_refill).transpose();
    let refill = refill.map_err(|reason| wrong_at("refill", &reason))?;
    let quotas = shared.node.quotas();
    let (lasting, until) = (document.lasting.as_deref(), document.until.as_deref());
    let until_ns = end_ns(quotas.now_ns(), lasting, until)?;
    let change = Override {
        capacity: document.capacity,
        refill,
        grant: document.grant,
        until_ns: until_ns.unwrap_or(u64::MAX),
        by: admin.who().into(),
        reason: document.reason.into(),
    };
    let (limit, prefix) = (&document.limit, prefix(&document.prefix)?);
    let there = quotas.grant_there(limit, prefix, &change).await;
    there.map_err(refused)?;
    applied(quotas.set_override(limit, prefix, change)).await
}

/// Have the limit stand again.
#[utoipa::path(
    delete, path = "/v1/overrides", tag = "quotas", operation_id = "delete_override",
    params(Which),
    responses(
        (status = 200, description = "It does", body = Object),
        (status = 403, description = "Only an administrator may", body = ProblemDocument),
        (status = 404, description = "There was none", body = ProblemDocument),
    )
)]
pub(super) async fn delete(
    State(shared): State<Shared>,
    admin: Admin,
    Query(which): Query<Which>,
) -> Result<Json<Value>, Problem> {
    let by = admin.by(&which.reason);
    let quotas = shared.node.quotas();
    applied(quotas.clear_override(&which.limit, prefix(&which.prefix)?, by)).await
}

/// A limit that stands instead of another for one prefix, as JSON.
fn shown(limit: &str, prefix: &str, change: &Override) -> Value {
    let refill = change.refill.map(|(amount, period_ns)| {
        let period = Duration::from_nanos(period_ns);
        format!("{amount}/{}", duration::print(period))
    });
    json!({
        "limit": limit,
        "prefix": prefix,
        "capacity": change.capacity,
        "refill": refill,
        "grant": change.grant,
        "until": (change.until_ns != u64::MAX).then(|| moment(change.until_ns)),
        "by": change.by,
        "reason": change.reason,
    })
}

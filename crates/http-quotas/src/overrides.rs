//! `/v1/overrides`: another capacity or refill of a limit for one prefix, optionally temporary,
//! with a reason.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use http_api::body::{self, wrong_at};
use http_api::{Admin, Problem, ProblemDocument, Shared};
use model::duration;
use quota::Override;
use quota_service::parse_refill;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::admin::{BODY_SIZE_MAX, applied, end_ns, moment, prefix, refused};

/// An override of a limit for one prefix.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Override)]
pub(crate) struct OverrideDocument {
    /// Name of the limit.
    limit: String,
    /// Prefix with as many parts as the limit's pattern.
    #[schema(example = "acme/research/agent-42")]
    prefix: String,
    /// Capacity in place of the limit's.
    capacity: Option<u64>,
    /// Refill rate in place of the limit's.
    #[schema(example = "50/s")]
    refill: Option<String>,
    /// Extra credit, granted once when the override is set.
    #[serde(default)]
    grant: u64,
    /// Duration; permanent if both this and `until` are absent.
    #[serde(rename = "for")]
    #[schema(example = "2h")]
    lasting: Option<String>,
    /// End (RFC 3339).
    until: Option<String>,
    /// Reason of the change, for the audit log.
    reason: String,
}

/// Query parameters that name an override to remove.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Name of the limit.
    limit: String,
    /// Prefix of the override.
    prefix: String,
    /// Reason of the change, for the audit log.
    reason: String,
}

/// List the overrides.
#[utoipa::path(
    get, path = "/v1/overrides", tag = "quotas", operation_id = "list_overrides",
    responses((status = 200, description = "Overrides in the order of limit and prefix", body = Object))
)]
pub(super) async fn list(State(shared): State<Shared>) -> Json<Value> {
    let quotas = shared.node.quotas();
    let (rules, now_ns) = (quotas.rules(), quotas.now_ns());
    let overrides = rules.overrides().iter();
    let shown = overrides.filter_map(|((limit, prefix), change)| {
        let index = rules.policies().index(*limit)?;
        let name = &rules.limit(index).name;
        let prefix = match prefix.split_once('?') {
            Some((name, run)) => format!("{name}?run={run}"),
            None => prefix.to_string(),
        };
        // Ended overrides are removed when the next one is set, so they are filtered here.
        (now_ns < change.until_ns).then(|| shown(name, &prefix, change))
    });
    Json(json!({ "overrides": shown.collect::<Vec<_>>() }))
}

/// Override a limit for one prefix.
#[utoipa::path(
    put, path = "/v1/overrides", tag = "quotas", operation_id = "put_override",
    request_body = OverrideDocument,
    responses(
        (status = 200, description = "The override is in effect and on disk", body = Object),
        (status = 400, description = "The override is invalid for this limit", body = ProblemDocument),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
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
        let detail = "one of `capacity`, `refill` and `grant` is required";
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
    let in_store = quotas.grant_in_store(limit, prefix, &change).await;
    in_store.map_err(refused)?;
    applied(quotas.set_override(limit, prefix, change)).await
}

/// Remove an override.
#[utoipa::path(
    delete, path = "/v1/overrides", tag = "quotas", operation_id = "delete_override",
    params(Which),
    responses(
        (status = 200, description = "The override was removed", body = Object),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
        (status = 404, description = "There is no such override", body = ProblemDocument),
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

/// Returns an override as JSON.
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

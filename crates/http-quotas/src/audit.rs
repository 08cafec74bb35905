//! `GET /v1/audit`: the changes of limits, with author, time and reason.

use axum::Json;
use axum::extract::{Query, State};
use http_api::Admin;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::Shared;
use model::ErrorCode;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::admin::moment;

/// Query parameters of the audit log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Number of the first change.
    #[serde(default)]
    from: u64,
    /// Most changes; default 100, at most 1000.
    count: Option<usize>,
}

/// List the stored changes of limits, oldest first.
#[utoipa::path(
    get, path = "/v1/audit", tag = "quotas", operation_id = "audit",
    params(AuditQuery),
    responses(
        (status = 200, description = "Changes, and `next`, the number from which to continue", body = Object),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
    )
)]
pub(super) async fn audit(
    State(shared): State<Shared>,
    _: Admin,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Value>, Problem> {
    let count = query.count.unwrap_or(100);
    // The audit log may have to be read from disk.
    let read = http_api::off_thread(move || {
        let read = shared.node.quotas().audit(query.from, count);
        read.map_err(|error| Problem::of(ErrorCode::Internal, error.to_string()))
    });
    let (first, audits) = read.await?;
    let changes = (first..).zip(&audits).map(|(number, audit)| {
        json!({
            "number": number,
            "at": moment(audit.at_ns),
            "by": audit.by,
            "what": audit.what,
            "reason": audit.reason,
            "version": audit.version,
        })
    });
    let changes: Vec<_> = changes.collect();
    let next = first + changes.len() as u64;
    Ok(Json(json!({ "changes": changes, "next": next })))
}

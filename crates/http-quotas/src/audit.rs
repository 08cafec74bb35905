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

/// Default number of changes.
const COUNT: usize = 100;

/// Most changes.
const COUNT_MAX: usize = 1_000;

/// Query parameters of the audit log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Number of the first change.
    from: Option<u64>,
    /// Most changes; default 100, at most 1000.
    count: Option<usize>,
    /// This number of newest changes, at most 1000, instead of `from` and `count`.
    last: Option<usize>,
}

/// List the stored changes of limits, oldest first.
#[utoipa::path(
    get, path = "/v1/audit", tag = "quotas", operation_id = "audit",
    params(AuditQuery),
    responses(
        (status = 200, description = "Changes, and `next`, the number from which to continue", body = Object),
        (status = 400, description = "`last` is combined with `from` or `count`", body = ProblemDocument),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
    )
)]
pub(super) async fn audit(
    State(shared): State<Shared>,
    _: Admin,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Value>, Problem> {
    let AuditQuery { from, count, last } = query;
    if last.is_some() && (from.is_some() || count.is_some()) {
        let detail = "`last` cannot be combined with `from` or `count`";
        return Err(Problem::invalid(detail));
    }
    // The audit log may have to be read from disk.
    let read = http_api::off_thread(move || {
        let quotas = shared.node.quotas();
        let read = match last {
            Some(last) => quotas.newest_audit(last.clamp(1, COUNT_MAX)),
            None => quotas.audit(from.unwrap_or(0), count.unwrap_or(COUNT)),
        };
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

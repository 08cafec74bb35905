//! Who changed what, when, and why.

use axum::Json;
use axum::extract::{Query, State};
use model::ErrorCode;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::admin::moment;
use super::bearer::Admin;
use crate::http::Shared;
use crate::http::openapi::ProblemDocument;
use crate::http::problem::Problem;

/// From where on, and how many.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// The number of the first change.
    #[serde(default)]
    from: u64,
    /// Changes, at most 1000.
    count: Option<usize>,
}

/// The changes of limits that are kept, oldest first.
#[utoipa::path(
    get, path = "/v1/audit", tag = "quotas", operation_id = "audit",
    params(AuditQuery),
    responses(
        (status = 200, description = "Changes, and the number to go on from", body = Object),
        (status = 403, description = "Only an administrator may", body = ProblemDocument),
    )
)]
pub(super) async fn audit(
    State(shared): State<Shared>,
    _: Admin,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Value>, Problem> {
    let count = query.count.unwrap_or(100);
    // It may read from the disk.
    let read = crate::http::off_thread(move || {
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

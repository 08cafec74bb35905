//! `/v1/policies`: all limits of the node.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use http_api::{Admin, Problem, ProblemDocument, Shared, body};
use quota::Limit;
use quota_service::{By, LimitConfig};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::admin::{applied, refused};

/// Largest request body, in bytes: 1,024 limits of the largest size.
const BODY_SIZE_MAX: usize = 1 << 20;

/// The new set of limits, which replaces the old one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Policies)]
pub(crate) struct PoliciesDocument {
    /// Limits with the fields of the configuration file: `name`, `match`, `unit`, and either
    /// `capacity` and `refill`, or `budget` and `every`, or `capacity` alone for slots.
    #[schema(value_type = Vec<Object>, example = json!([
        {"name": "agent", "match": "*/*/*", "unit": "requests", "capacity": 100, "refill": "10/s"}]))]
    limits: Vec<LimitConfig>,
    /// Reason of the change, for the audit log.
    reason: String,
}

/// Get all limits, with their version as `ETag`.
#[utoipa::path(
    get, path = "/v1/policies", tag = "quotas", operation_id = "get_policies",
    responses((status = 200, description = "Limits in the order in which they were defined", body = Object))
)]
pub(super) async fn get(State(shared): State<Shared>) -> Response {
    let quotas = shared.node.quotas();
    let (rules, now_ns) = (quotas.rules(), quotas.now_ns());
    let policies = rules.policies();
    let limits = policies.limits().iter().enumerate();
    let limits: Vec<_> = limits
        .map(|(index, (_, limit))| {
            let mut shown = json!(LimitConfig::of(limit));
            // A factor that an administrator set, temporarily or permanently.
            let factor = rules.dial(index).factor_at(now_ns);
            if factor != limit.factor {
                let (numerator, denominator) = factor.parts();
                shown["factor_now"] = json!(format!("{numerator}/{denominator}"));
            }
            shown
        })
        .collect();
    let version = policies.version();
    let tag = HeaderValue::try_from(format!("\"{version}\""));
    let mut response = Json(json!({ "version": version, "limits": limits })).into_response();
    if let Ok(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Replace all limits.
///
/// A limit of an existing name keeps its consumption. A higher capacity applies at once.
#[utoipa::path(
    put, path = "/v1/policies", tag = "quotas", operation_id = "put_policies",
    params(("If-Match" = Option<String>, Header, description = "The version that must be current")),
    request_body = PoliciesDocument,
    responses(
        (status = 200, description = "The limits are in effect and on disk", body = Object),
        (status = 400, description = "The limits are invalid; `mistakes` lists every error", body = ProblemDocument),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
        (status = 412, description = "Another version is current", body = ProblemDocument),
    )
)]
pub(super) async fn put(
    State(shared): State<Shared>,
    admin: Admin,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: PoliciesDocument = body::parse(&body)?;
    let expected = expected(&headers)?;
    let limits = read(&document.limits)?;
    // The change visits every bucket, so it runs off the connection's thread.
    let change = http_api::off_thread(move || {
        let by: By<'_> = admin.by(&document.reason);
        let changed = shared.node.quotas().set_policies(limits, expected, by);
        changed.map_err(refused)
    });
    Ok(applied(Ok(change.await?)).await?.into_response())
}

fn read(written: &[LimitConfig]) -> Result<Vec<Limit>, Problem> {
    let (mut limits, mut mistakes) = (Vec::new(), Vec::new());
    for written in written {
        match written.read() {
            Ok(limit) => limits.push(limit),
            Err(reasons) => {
                let name = &written.name;
                let reasons = reasons.iter();
                mistakes.extend(reasons.map(|reason| format!("limit `{name}`: {reason}")));
            }
        }
    }
    match mistakes.is_empty() {
        true => Ok(limits),
        false => Err(Problem::invalid(mistakes.join("; ")).with("mistakes", mistakes)),
    }
}

fn expected(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let version = value.to_str().ok().and_then(|text| {
        let text = text.trim().strip_prefix('"')?.strip_suffix('"')?;
        text.parse().ok()
    });
    match version {
        Some(version) => Ok(Some(version)),
        None => Err(Problem::invalid(
            "`if-match` must be a version of the limits, as in `If-Match: \"3\"`",
        )),
    }
}

//! Quota administration: factors, halts and resets.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use http_api::Admin;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::Shared;
use http_api::body::{self, wrong_at};
use http_api::time::{parse_rfc3339, push_rfc3339};
use model::ErrorCode;
use model::duration;
use quota::{AdminError, Prefix, Subject};
use quota_service::{AppliedChange, ChangeError, parse_factor};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

/// Largest request body, in bytes.
pub(super) const BODY_SIZE_MAX: usize = 16 << 10;

/// A new factor of a limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Factor)]
pub(crate) struct FactorDocument<'a> {
    /// A positive number or fraction: `0.5`, `2` or `"1/3"`.
    #[serde(borrow)]
    #[schema(schema_with = factor_schema)]
    factor: &'a RawValue,
    /// Duration; permanent if both this and `until` are absent.
    #[serde(rename = "for")]
    #[schema(example = "10m")]
    lasting: Option<String>,
    /// End (RFC 3339).
    until: Option<String>,
    /// Reason of the change, for the audit log.
    reason: String,
}

/// Returns the schema of a factor: a number, or a string with a number or a fraction.
fn factor_schema() -> Schema {
    let of = |kind| ObjectBuilder::new().schema_type(kind);
    let either = OneOfBuilder::new()
        .item(of(Type::Number))
        .item(of(Type::String));
    Schema::OneOf(either.build())
}

/// A prefix to halt or to resume.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Halt)]
pub(crate) struct HaltDocument {
    /// `org`, `org/namespace` or `org/namespace/agent`, optionally followed by `?run=…`.
    #[schema(example = "acme/research")]
    prefix: String,
    /// Reason of the change, for the audit log.
    reason: String,
}

/// The buckets to reset: those of `subject`, or the one of `limit` and `prefix`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Reset)]
pub(crate) struct ResetDocument {
    /// Subject whose own buckets are reset. Buckets that it shares with others are not.
    subject: Option<String>,
    /// Limit of the single bucket to reset.
    limit: Option<String>,
    /// Prefix of the single bucket to reset.
    prefix: Option<String>,
    /// Reason of the change, for the audit log.
    reason: String,
}

/// Scale a limit by a factor, for a time or permanently.
#[utoipa::path(
    put, path = "/v1/factors/{limit}", tag = "quotas", operation_id = "put_factor",
    params(("limit" = String, Path, description = "Name of the limit")),
    request_body = FactorDocument,
    responses(
        (status = 200, description = "The factor is in effect and on disk", body = Object),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
        (status = 404, description = "There is no such limit", body = ProblemDocument),
    )
)]
pub(super) async fn factor(
    State(shared): State<Shared>,
    admin: Admin,
    Path(limit): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: FactorDocument<'_> = body::parse(&body)?;
    let text = document.factor.get().trim_matches('"');
    let factor = parse_factor(text).map_err(|reason| wrong_at("factor", &reason))?;
    let quotas = shared.node.quotas();
    let (lasting, until) = (document.lasting.as_deref(), document.until.as_deref());
    let until_ns = end_ns(quotas.now_ns(), lasting, until)?;
    let by = admin.by(&document.reason);
    applied(quotas.set_factor(&limit, factor, until_ns, by)).await
}

/// List the halted prefixes.
#[utoipa::path(
    get, path = "/v1/halts", tag = "quotas", operation_id = "list_halts",
    responses((status = 200, description = "Halts in the order of their prefixes", body = Object))
)]
pub(super) async fn halts(State(shared): State<Shared>) -> Json<Value> {
    let rules = shared.node.quotas().rules();
    let halts: BTreeMap<_, _> = rules
        .halts()
        .iter()
        .map(|(prefix, halt)| {
            let since = moment(halt.since_ns);
            (
                prefix,
                json!({"since": since, "by": halt.by, "reason": halt.reason}),
            )
        })
        .collect();
    Json(json!({ "halts": halts }))
}

/// Halt a prefix: deny all its takes.
#[utoipa::path(
    post, path = "/v1/halt", tag = "quotas", operation_id = "halt",
    request_body = HaltDocument,
    responses(
        (status = 200, description = "The prefix is halted, also after a restart", body = Object),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
    )
)]
pub(super) async fn halt(
    State(shared): State<Shared>,
    admin: Admin,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: HaltDocument = body::parse(&body)?;
    let by = admin.by(&document.reason);
    applied(shared.node.quotas().halt(prefix(&document.prefix)?, by)).await
}

/// Resume a halted prefix.
#[utoipa::path(
    post, path = "/v1/resume", tag = "quotas", operation_id = "resume",
    request_body = HaltDocument,
    responses(
        (status = 200, description = "The prefix is no longer halted", body = Object),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
        (status = 404, description = "The prefix was not halted", body = ProblemDocument),
    )
)]
pub(super) async fn resume(
    State(shared): State<Shared>,
    admin: Admin,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: HaltDocument = body::parse(&body)?;
    let by = admin.by(&document.reason);
    applied(shared.node.quotas().resume(prefix(&document.prefix)?, by)).await
}

/// Reset buckets to their full capacity.
#[utoipa::path(
    post, path = "/v1/reset", tag = "quotas", operation_id = "reset",
    request_body = ResetDocument,
    responses(
        (status = 200, description = "The buckets were reset", body = Object),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
        (status = 404, description = "There is no such limit", body = ProblemDocument),
    )
)]
pub(super) async fn reset(
    State(shared): State<Shared>,
    admin: Admin,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let document: ResetDocument = body::parse(&body)?;
    let (quotas, by) = (shared.node.quotas(), admin.by(&document.reason));
    match (&document.subject, &document.limit, &document.prefix) {
        (Some(subject), None, None) => {
            let subject = Subject::parse(subject);
            let subject = subject.map_err(|error| wrong_at("subject", &error.to_string()))?;
            let in_store = quotas.reset_in_store(&subject).await;
            in_store.map_err(|error| refused(error.into()))?;
            applied(quotas.reset(&subject, by)).await
        }
        (None, Some(limit), Some(name)) => {
            let prefix = prefix(name)?;
            let in_store = quotas.reset_bucket_in_store(limit, prefix).await;
            in_store.map_err(refused)?;
            applied(quotas.reset_bucket(limit, prefix, by)).await
        }
        _ => {
            let detail = "either `subject`, or `limit` and `prefix`, is required";
            Err(Problem::invalid(detail))
        }
    }
}

/// Answers a change when it is on disk. `here_alone` says that other nodes which share the buckets
/// do not get the change.
pub(super) async fn applied(
    change: Result<AppliedChange, ChangeError>,
) -> Result<Json<Value>, Problem> {
    let AppliedChange {
        version,
        durable,
        is_here_alone,
    } = change.map_err(refused)?;
    if let Some(durable) = durable {
        durable.await.map_err(super::errors::not_durable)?;
    }
    Ok(Json(match is_here_alone {
        true => json!({ "version": version, "here_alone": true }),
        false => json!({ "version": version }),
    }))
}

/// Maps the error of a change to a problem.
pub(super) fn refused(error: ChangeError) -> Problem {
    let detail = error.to_string();
    match error {
        ChangeError::Conflict { version } => {
            let status = axum::http::StatusCode::PRECONDITION_FAILED;
            Problem::new(status, ErrorCode::Conflict, detail).with("version", version)
        }
        ChangeError::Limits(mistakes) => {
            let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
            Problem::invalid(mistakes.join("; ")).with("mistakes", mistakes)
        }
        ChangeError::Invalid(AdminError::UnknownLimit(_) | AdminError::None(_)) => {
            Problem::of(ErrorCode::NotFound, detail)
        }
        ChangeError::Invalid(AdminError::TooMany(_)) => Problem::of(ErrorCode::TooLarge, detail),
        ChangeError::Invalid(AdminError::ForeignPrefix { .. } | AdminError::Range(_)) => {
            Problem::invalid(detail)
        }
        ChangeError::Apart { .. } => Problem::of(ErrorCode::Unsupported, detail),
        ChangeError::StoreUnavailable(error) if error.may_be_done => {
            Problem::of(ErrorCode::Unconfirmed, detail)
        }
        ChangeError::StoreUnavailable(_) | ChangeError::Append(_) => {
            Problem::of(ErrorCode::Unavailable, detail)
        }
    }
}

/// Parses a prefix of a request.
pub(super) fn prefix(text: &str) -> Result<Prefix<'_>, Problem> {
    Prefix::parse(text).map_err(|error| wrong_at("prefix", &error.to_string()))
}

/// Returns the end of a temporary change; `None` for a permanent one.
pub(super) fn end_ns(
    now_ns: u64,
    lasting: Option<&str>,
    until: Option<&str>,
) -> Result<Option<u64>, Problem> {
    match (lasting, until) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(wrong_at("until", "`for` and `until` cannot be combined")),
        (Some(lasting), None) => {
            let lasting = duration::parse(lasting);
            let lasting = lasting.map_err(|error| wrong_at("for", &error.to_string()))?;
            let lasting_ns = u64::try_from(lasting.as_nanos()).unwrap_or(u64::MAX);
            Ok(Some(now_ns.saturating_add(lasting_ns)))
        }
        (None, Some(until)) => match parse_rfc3339(until) {
            Some(unix_ms) => Ok(Some(unix_ms.saturating_mul(1_000_000))),
            None => Err(wrong_at(
                "until",
                "must be a time like 2026-03-21T12:00:00Z",
            )),
        },
    }
}

/// Formats a time as RFC 3339.
pub(super) fn moment(unix_ns: u64) -> String {
    let mut text = Vec::new();
    push_rfc3339(&mut text, unix_ns / 1_000_000);
    String::from_utf8_lossy(&text).into_owned()
}

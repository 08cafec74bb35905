//! Changes beside the limits: a factor, a halt, a new beginning.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use model::ErrorCode;
use node::config::duration;
use node::quotas::{AdminError, Applied, ChangeError, Prefix, Subject, parse_factor};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

use super::bearer::Admin;
use crate::http::Shared;
use crate::http::body::{self, wrong_at};
use crate::http::openapi::ProblemDocument;
use crate::http::problem::Problem;
use crate::http::time::{parse_rfc3339, push_rfc3339};

/// Bytes of a body.
pub(super) const BODY_SIZE_MAX: usize = 16 << 10;

/// Another factor of a limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Factor)]
pub(crate) struct FactorDocument<'a> {
    /// `0.5`, `2` or `"1/3"`.
    #[serde(borrow)]
    #[schema(schema_with = factor_schema)]
    factor: &'a RawValue,
    /// For how long; for good if neither this nor `until` is said.
    #[serde(rename = "for")]
    #[schema(example = "10m")]
    lasting: Option<String>,
    /// Until when (RFC 3339).
    until: Option<String>,
    /// Why.
    reason: String,
}

/// A number, or a text with a number or a fraction.
fn factor_schema() -> Schema {
    let of = |kind| ObjectBuilder::new().schema_type(kind);
    let either = OneOfBuilder::new()
        .item(of(Type::Number))
        .item(of(Type::String));
    Schema::OneOf(either.build())
}

/// A prefix that is halted, or is not any more.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Halt)]
pub(crate) struct HaltDocument {
    /// `org`, `org/namespace` or `org/namespace/agent`, with `?run=…` behind it or not.
    #[schema(example = "acme/research")]
    prefix: String,
    /// Why.
    reason: String,
}

/// What is to be as if nothing had been taken.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Reset)]
pub(crate) struct ResetDocument {
    /// What is a subject's own, but not what it shares with others.
    subject: Option<String>,
    /// Or one bucket of a limit: of `prefix`.
    limit: Option<String>,
    /// Whose bucket.
    prefix: Option<String>,
    /// Why.
    reason: String,
}

/// Give more or less of a limit, for a time or for good.
#[utoipa::path(
    put, path = "/v1/factors/{limit}", tag = "quotas", operation_id = "put_factor",
    params(("limit" = String, Path, description = "Its name")),
    request_body = FactorDocument,
    responses(
        (status = 200, description = "It stands, and is on disk", body = Object),
        (status = 403, description = "Only an administrator may", body = ProblemDocument),
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

/// What is halted.
#[utoipa::path(
    get, path = "/v1/halts", tag = "quotas", operation_id = "list_halts",
    responses((status = 200, description = "By prefix", body = Object))
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

/// Admit nothing more for a prefix.
#[utoipa::path(
    post, path = "/v1/halt", tag = "quotas", operation_id = "halt",
    request_body = HaltDocument,
    responses(
        (status = 200, description = "It is halted, also after a restart", body = Object),
        (status = 403, description = "Only an administrator may", body = ProblemDocument),
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

/// Admit again what was halted.
#[utoipa::path(
    post, path = "/v1/resume", tag = "quotas", operation_id = "resume",
    request_body = HaltDocument,
    responses(
        (status = 200, description = "It is not halted any more", body = Object),
        (status = 403, description = "Only an administrator may", body = ProblemDocument),
        (status = 404, description = "It was not halted", body = ProblemDocument),
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

/// Make buckets as if nothing had been taken from them.
#[utoipa::path(
    post, path = "/v1/reset", tag = "quotas", operation_id = "reset",
    request_body = ResetDocument,
    responses(
        (status = 200, description = "They are", body = Object),
        (status = 403, description = "Only an administrator may", body = ProblemDocument),
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
            let there = quotas.reset_there(&subject).await;
            there.map_err(|away| refused(away.into()))?;
            applied(quotas.reset(&subject, by)).await
        }
        (None, Some(limit), Some(name)) => {
            let prefix = prefix(name)?;
            let there = quotas.reset_bucket_there(limit, prefix).await;
            there.map_err(refused)?;
            applied(quotas.reset_bucket(limit, prefix, by)).await
        }
        _ => {
            let detail = "say `subject`, or `limit` and `prefix`";
            Err(Problem::invalid(detail))
        }
    }
}

/// Tells of a change when it is on disk, and whether other nodes that share the buckets know nothing
/// of it.
pub(super) async fn applied(change: Result<Applied, ChangeError>) -> Result<Json<Value>, Problem> {
    let Applied {
        version,
        durable,
        is_here_alone,
    } = change.map_err(refused)?;
    if let Some(durable) = durable {
        durable.await.map_err(|_| super::unconfirmed())?;
    }
    Ok(Json(match is_here_alone {
        true => json!({ "version": version, "here_alone": true }),
        false => json!({ "version": version }),
    }))
}

/// Why something was not changed.
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
        ChangeError::Away(away) if away.may_be_done => Problem::of(ErrorCode::Unconfirmed, detail),
        ChangeError::Away(_) | ChangeError::Append(_) => {
            Problem::of(ErrorCode::Unavailable, detail)
        }
    }
}

/// A prefix that somebody named.
pub(super) fn prefix(text: &str) -> Result<Prefix<'_>, Problem> {
    Prefix::parse(text).map_err(|error| wrong_at("prefix", &error.to_string()))
}

/// When a change ends that is for a time.
pub(super) fn end_ns(
    now_ns: u64,
    lasting: Option<&str>,
    until: Option<&str>,
) -> Result<Option<u64>, Problem> {
    match (lasting, until) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(wrong_at("until", "of `for` and `until` there is one")),
        (Some(lasting), None) => {
            let lasting = duration::parse(lasting);
            let lasting = lasting.map_err(|error| wrong_at("for", &error.to_string()))?;
            let lasting_ns = u64::try_from(lasting.as_nanos()).unwrap_or(u64::MAX);
            Ok(Some(now_ns.saturating_add(lasting_ns)))
        }
        (None, Some(until)) => match parse_rfc3339(until) {
            Some(unix_ms) => Ok(Some(unix_ms.saturating_mul(1_000_000))),
            None => Err(wrong_at("until", "a moment is like 2026-03-21T12:00:00Z")),
        },
    }
}

/// A moment as JSON has it.
pub(super) fn moment(unix_ns: u64) -> String {
    let mut text = Vec::new();
    push_rfc3339(&mut text, unix_ns / 1_000_000);
    String::from_utf8_lossy(&text).into_owned()
}

//! `POST …/retract`: takes back the newest messages.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use conversation_service::{RetractExtent, RetractRequest, SeqRange};
use http_api::{Client, Problem, Shared, body, off_thread};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::append::{answered, json};
use super::place::{Conversation, Fields, of};

/// Largest request body, in bytes.
const BODY_MAX: usize = 64 << 10;

/// The messages to retract: either `last` or `after`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Retract)]
pub(crate) struct RetractDocument {
    /// Required sequence number of the newest message, `head_seq`; same as `If-Match`.
    #[serde(default)]
    #[schema(example = 41)]
    expect: Option<u64>,
    /// Number of newest messages to retract; all if there are fewer.
    #[serde(default)]
    #[schema(example = 1, minimum = 1)]
    last: Option<u64>,
    /// Retracts all messages after this sequence number.
    #[serde(default)]
    after: Option<u64>,
    /// Id of the request, 1 to 128 of `A-Z a-z 0-9 . _ : -`; same as `Idempotency-Key`. A repeated
    /// request with the same id is answered like the first one.
    #[serde(default)]
    #[schema(example = "undo-7f3")]
    id: Option<String>,
}

/// The retracted messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Retracted)]
pub(crate) struct RetractedDocument {
    /// Number of retracted messages.
    #[schema(example = 1)]
    count: u64,
    /// First of the sequence numbers that have no message any more; absent if `count` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 41)]
    first_seq: Option<u64>,
    /// Last of these sequence numbers, which is that of the retraction itself; absent if `count` is
    /// 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 42)]
    last_seq: Option<u64>,
    /// Sequence number of the newest message or retraction.
    #[schema(example = 42)]
    head_seq: u64,
}

/// Retract the newest messages.
///
/// They are left out of pages, windows, lists, webhooks and forks from then on. Their sequence
/// numbers and ids are not used again, and the retraction has the next sequence number. Their bytes
/// stay on disk until the conversation is cleared or erased, or until retention removes them.
#[utoipa::path(
    post, path = "/conversations/{id}/retract", tag = "conversations", operation_id = "retract",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("If-Match" = Option<String>, Header,
            description = "Required sequence number of the newest message, as in `\"41\"`"),
        ("Idempotency-Key" = Option<String>, Header, description = "Id of the request"),
    ),
    request_body = RetractDocument,
    responses(
        (status = 200, description = "The messages were retracted", body = RetractedDocument),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 403, description = "The token may not use the conversation's name", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 409, description = "The conversation is archived, or the id is used by a message or another request", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased", body = http_api::ProblemDocument),
        (status = 412, description = "The newest message has another sequence number: `head_seq`", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn retract(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    client.check(&name)?;
    let body = body::read_json(&headers, body, BODY_MAX).await?;
    let document: RetractDocument = body::parse(&body)?;
    let extent = extent(&document)?;
    let Some(expect) = Fields::of(&headers).expected(document.expect)? else {
        let detail = "`expect` is required: the sequence number of the newest message";
        return Err(Problem::invalid(detail));
    };
    let id = match (Fields::of(&headers).idempotency_key()?, document.id) {
        (Some(key), Some(id)) if key != id => {
            let detail = format!("`idempotency-key` ({key}) and `id` ({id}) differ");
            return Err(Problem::invalid(detail));
        }
        (key, id) => id.or(key.map(str::to_owned)),
    };
    let pending = off_thread(move || {
        let request = RetractRequest {
            id: id.as_deref(),
            expect,
            extent,
        };
        Ok(of(&shared)?.retract(&name, request)?)
    });
    let retracted = answered(pending.await?).await?;
    let range = |number: fn(&SeqRange) -> u64| retracted.range.as_ref().map(number);
    Ok(json(&RetractedDocument {
        count: retracted.count,
        first_seq: range(|it| it.first),
        last_seq: range(|it| it.last),
        head_seq: retracted.head_seq,
    }))
}

fn extent(document: &RetractDocument) -> Result<RetractExtent, Problem> {
    match (document.last, document.after) {
        (Some(0), None) => Err(Problem::invalid("`last` must be at least 1")),
        (Some(count), None) => Ok(RetractExtent::Newest(count)),
        (None, Some(seq)) => Ok(RetractExtent::After(seq)),
        (Some(_), Some(_)) => Err(Problem::invalid("`last` and `after` cannot be combined")),
        (None, None) => Err(Problem::invalid("`last` or `after` is required")),
    }
}

//! `POST …/messages`: appends messages.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use conversation_service::{Appended, Batch, NewMessage, Pending};
use http_api::{Client, Problem, Shared, body, off_thread, within_write_limit};
use model::Name;
use platform::{Durable, NotDurable};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::incoming::{Incoming, Ready};
use super::outgoing::push_json;
use super::place::{Conversation, expected, idempotency_key, of};

/// Bytes allowed in a body in addition to the messages: member names, quotes and spaces.
pub(super) const AROUND: usize = 1 << 20;

/// Messages to append, all or none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Append)]
pub(crate) struct Append<'a> {
    /// Required sequence number of the newest message; same as `If-Match`.
    #[serde(default)]
    #[schema(example = 41)]
    expect: Option<u64>,
    /// 1 to 256 messages in order.
    #[serde(borrow)]
    messages: Vec<Incoming<'a>>,
}

/// The positions of appended messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Appended)]
pub(crate) struct AppendedDocument<'a> {
    /// Smallest sequence number of these messages.
    #[schema(example = 42)]
    pub(super) first_seq: u64,
    /// Largest sequence number of these messages.
    #[schema(example = 42)]
    pub(super) last_seq: u64,
    /// Sequence number of the conversation's newest message.
    #[schema(example = 42)]
    pub(super) head_seq: u64,
    /// Number of messages that existed already.
    pub(super) deduplicated: usize,
    /// Sequence number and id of each message.
    pub(super) messages: Vec<Placed<'a>>,
}

/// Sequence number and id of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Placed<'a> {
    #[schema(example = 42)]
    seq: u64,
    #[schema(example = "m-7f3")]
    id: &'a str,
}

impl<'a> AppendedDocument<'a> {
    pub(super) fn new(batch: &[NewMessage<'a>], appended: &'a Appended) -> Self {
        let ids = batch.iter().map(|message| message.id);
        Self::of_ids(ids, appended)
    }

    /// Builds the document. `ids` are those that the authors gave; the node made the others.
    pub(super) fn of_ids(
        ids: impl Iterator<Item = Option<&'a str>>,
        appended: &'a Appended,
    ) -> Self {
        let mut made = appended.made_ids().iter();
        let placed = |(seq, id): (u64, Option<&'a str>)| Placed {
            seq,
            id: id
                .or_else(|| made.next().map(String::as_str))
                .unwrap_or_default(),
        };
        Self {
            first_seq: appended.first_seq,
            last_seq: appended.last_seq,
            head_seq: appended.head_seq,
            deduplicated: appended.deduplicated,
            messages: appended.seqs().zip(ids).map(placed).collect(),
        }
    }
}

/// Append 1 to 256 messages, all or none.
///
/// The answer is sent when the messages are on disk. A conversation that does not exist is created.
/// A message whose id exists is not appended again; the answer has its existing position. If all
/// messages exist, the status is 200.
#[utoipa::path(
    post, path = "/conversations/{id}/messages", tag = "messages",
    operation_id = "append",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("If-Match" = Option<String>, Header,
            description = "Required sequence number of the newest message, as in `\"41\"`"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "Id for a message without one"),
    ),
    request_body = Append,
    responses(
        (status = 201, description = "The messages were appended", body = AppendedDocument,
            headers(("ETag" = String, description = "Sequence number of the newest message"))),
        (status = 200, description = "All messages existed already", body = AppendedDocument),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 409, description = "An id is used by another message", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased", body = http_api::ProblemDocument),
        (status = 412, description = "The newest message has another sequence number: `head_seq`", body = http_api::ProblemDocument),
        (status = 413, description = "There are too many messages, or they are too large", body = http_api::ProblemDocument),
        (status = 415, description = "The body is not JSON", body = http_api::ProblemDocument),
        (status = 429, description = "A quota on appended bytes is exceeded; retry after `retry_ms`", body = http_api::ProblemDocument),
        (status = 503, description = "The write failed (disk full or failed), or its outcome is unknown", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn append(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let conversations = of(&shared)?;
    let size_max = conversations.options().limits.batch_bytes_max + AROUND;
    let body = body::read_json(&headers, body, size_max).await?;
    let request: Append<'_> = body::parse(&body)?;
    let expect = expected(&headers, request.expect)?;
    let ready = Ready::new(request.messages, idempotency_key(&headers)?)?;
    let messages = &ready.messages();
    let batch = Batch { expect, messages };
    let charged = client.charge_bytes(&shared.node, batch.size() as u64)?;
    let pending = match conversations.append_at_once(&name, batch)? {
        Some(pending) => pending,
        None => append_off_thread(&shared, name, &headers, body.clone()).await?,
    };
    let appended = charged_and_answered(charged, pending).await?;
    let status = if appended.deduplicated == messages.len() {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let document = AppendedDocument::new(messages, &appended);
    Ok((
        status,
        [(header::ETAG, etag(appended.head_seq))],
        json(&document),
    )
        .into_response())
}

/// Appends on a blocking thread, after reading from disk what the decision needs.
async fn append_off_thread(
    shared: &Shared,
    name: Name,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Pending<Appended>, Problem> {
    let (shared, headers) = (shared.clone(), headers.clone());
    off_thread(move || {
        let request: Append<'_> = body::parse(&body)?;
        let expect = expected(&headers, request.expect)?;
        let ready = Ready::new(request.messages, idempotency_key(&headers)?)?;
        let messages = &ready.messages();
        Ok(of(&shared)?.append(&name, Batch { expect, messages })?)
    })
    .await
}

/// Waits until a pending result is on disk.
pub(super) async fn answered<T, E>(pending: platform::Pending<T, E>) -> Result<T, Problem>
where
    E: From<NotDurable>,
    Problem: From<E>,
{
    charged_and_answered(None, pending).await
}

/// Waits until a pending result and its quota charge are on disk.
pub(super) async fn charged_and_answered<T, E>(
    charged: Option<Durable>,
    pending: platform::Pending<T, E>,
) -> Result<T, Problem>
where
    E: From<NotDurable>,
    Problem: From<E>,
{
    let both = async {
        let outcome = pending.await?;
        if let Some(charged) = charged {
            charged.await.map_err(not_durable)?;
        }
        Ok(outcome)
    };
    within_write_limit(both).await
}

/// Returns the problem of a quota charge that is not durable.
pub(super) fn not_durable(error: NotDurable) -> Problem {
    Problem::of(error.code(), error.to_string())
}

/// Formats a sequence number or a version as an entity tag.
pub(super) fn etag(number: u64) -> HeaderValue {
    let text = format!("\"{number}\"");
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("\"0\""))
}

/// Returns a response with a JSON body.
pub(super) fn json(value: &impl Serialize) -> Response {
    let mut out = Vec::with_capacity(128);
    push_json(&mut out, value);
    json_bytes(out)
}

pub(super) fn json_bytes(out: Vec<u8>) -> Response {
    let content_type = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, content_type)], out).into_response()
}

//! Appending messages.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{ErrorCode, Name};
use node::conversations::{Appended, Batch, NewMessage, Pending};
use node::quotas::{Durable, Unconfirmed};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::incoming::{Incoming, Ready};
use super::outgoing::push_json;
use super::place::{Conversation, expected, idempotency_key, of};
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::quotas::Client;
use crate::http::{Shared, off_thread};

/// What surrounds the messages in a body, at most: names, quotes and spaces.
pub(super) const AROUND: usize = 1 << 20;

/// How long an answer may wait for the disk.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Messages that are appended at once, all or none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Append)]
pub(crate) struct Append<'a> {
    /// The number that the newest message must have; the same as `If-Match`.
    #[serde(default)]
    #[schema(example = 41)]
    expect: Option<u64>,
    /// 1 to 256 of them, in order.
    #[serde(borrow)]
    messages: Vec<Incoming<'a>>,
}

/// They are on the disk.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Appended)]
pub(crate) struct AppendedDocument<'a> {
    /// The smallest number of one of these messages.
    #[schema(example = 42)]
    pub(super) first_seq: u64,
    /// The largest.
    #[schema(example = 42)]
    pub(super) last_seq: u64,
    /// The number of the conversation's newest message.
    #[schema(example = 42)]
    pub(super) head_seq: u64,
    /// How many were there already.
    pub(super) deduplicated: usize,
    /// Where each of them is.
    pub(super) messages: Vec<Placed<'a>>,
}

/// Where a message is.
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

    /// `ids` are those that the authors gave.
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
/// Answered once they are on the disk. The conversation is made if there is none. A message whose id
/// is there already is not appended again: the answer is the first one's, 200 if that is so of all.
#[utoipa::path(
    post, path = "/conversations/{id}/messages", tag = "messages",
    operation_id = "append",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("If-Match" = Option<String>, Header,
            description = "The number of the newest message, as in `\"41\"`: else nothing is appended"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "The id of a message that has none"),
    ),
    request_body = Append,
    responses(
        (status = 201, description = "Appended", body = AppendedDocument,
            headers(("ETag" = String, description = "The number of the newest message"))),
        (status = 200, description = "All of them were there already", body = AppendedDocument),
        (status = 400, description = "Something in the request is wrong", body = crate::http::openapi::ProblemDocument),
        (status = 409, description = "An id stands for another message", body = crate::http::openapi::ProblemDocument),
        (status = 410, description = "The conversation was erased", body = crate::http::openapi::ProblemDocument),
        (status = 412, description = "The newest message has another number: `head_seq`", body = crate::http::openapi::ProblemDocument),
        (status = 413, description = "Too many or too large", body = crate::http::openapi::ProblemDocument),
        (status = 415, description = "The body is not JSON", body = crate::http::openapi::ProblemDocument),
        (status = 429, description = "The token is over a limit on what is appended: `retry_ms`", body = crate::http::openapi::ProblemDocument),
        (status = 503, description = "Not on the disk: full, failed, or unknown", body = crate::http::openapi::ProblemDocument),
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
        None => elsewhere(&shared, name, &headers, body.clone()).await?,
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

/// Appends what cannot be decided about before something was read from the disk.
async fn elsewhere(
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

/// What is pending, once it may be told.
pub(super) async fn answered<T>(pending: Pending<T>) -> Result<T, Problem> {
    charged_and_answered(None, pending).await
}

/// The same of what somebody was charged for.
pub(super) async fn charged_and_answered<T>(
    charged: Option<Durable>,
    pending: Pending<T>,
) -> Result<T, Problem> {
    let both = async {
        let outcome = pending.await?;
        if let Some(charged) = charged {
            charged.await.map_err(unconfirmed)?;
        }
        Ok(outcome)
    };
    match tokio::time::timeout(ANSWER_LIMIT, both).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let limit = ANSWER_LIMIT.as_secs();
            let detail = format!("not on the disk after {limit} s: it may get there, or not");
            Err(Problem::of(ErrorCode::Unconfirmed, detail))
        }
    }
}

/// Whether it was charged nobody knows.
pub(super) fn unconfirmed(error: Unconfirmed) -> Problem {
    Problem::of(ErrorCode::Unconfirmed, error.to_string())
}

/// A sequence number or a version as an entity tag.
pub(super) fn etag(number: u64) -> HeaderValue {
    let text = format!("\"{number}\"");
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("\"0\""))
}

/// A JSON body.
pub(super) fn json(value: &impl Serialize) -> Response {
    let mut out = Vec::with_capacity(128);
    push_json(&mut out, value);
    json_bytes(out)
}

pub(super) fn json_bytes(out: Vec<u8>) -> Response {
    let content_type = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, content_type)], out).into_response()
}

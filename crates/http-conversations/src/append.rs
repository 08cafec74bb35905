//! `POST …/messages`: appends messages.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use conversation_service::{Appended, Batch, ConversationError, Conversations, Pending};
use door::{Pass, leave_to_pass, take_from_pass};
use http_api::reply::{Reply, push_number};
use http_api::{
    Client, FastRequest, Problem, Shared, Verdict, WrittenReply, body, off_thread,
    within_write_limit,
};
use model::Name;
use platform::{Durable, NotDurable};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use utoipa::ToSchema;

use super::incoming::{Incoming, Ready};
use super::outgoing::push_json;
use super::place::{Conversation, Fields, of, of_append, split_append};

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
    #[schema(value_type = Vec<Incoming>)]
    messages: SmallVec<[Incoming<'a>; 1]>,
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
    #[schema(value_type = Vec<Placed>)]
    pub(super) messages: SmallVec<[Placed<'a>; 1]>,
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
    let size_max = of(&shared)?.options().limits.batch_bytes_max + AROUND;
    let body = body::read_json(&headers, body, size_max).await?;
    let request = AppendRequest {
        name,
        fields: Fields::of(&headers),
        body: &body,
    };
    let answer = within_write_limit(decide(&shared, &client, request)?).await?;
    Ok(answer.into_response())
}

/// The routes of appends, of conversations without and with an organization and a namespace.
pub const APPEND_ROUTES: [&str; 2] = [
    "/v1/conversations/{id}/messages",
    "/v1/{org}/{namespace}/conversations/{id}/messages",
];

/// Returns the route of a path whose POST appends messages, if [`answer_append`] answers it.
pub fn append_route(path: &str) -> Option<&'static str> {
    let (namespace, _) = split_append(path)?;
    Some(APPEND_ROUTES[usize::from(namespace.is_some())])
}

/// Answers an append on the fast path, as its route does.
pub fn answer_append<'a>(
    shared: &Shared,
    pass: &Pass,
    request: &FastRequest<'a>,
    reply: &mut Reply,
) -> Verdict<'a> {
    let content_type = request.content_type;
    if pass.is_revoked() || !content_type.eq_ignore_ascii_case("application/json") {
        return Verdict::NotHere;
    }
    let Some(name) = of_append(request.path) else {
        return Verdict::NotHere;
    };
    let append = AppendRequest {
        name,
        fields: Fields {
            if_match: present(request.if_match),
            if_none_match: None,
            idempotency_key: present(request.idempotency_key),
        },
        body: request.body,
    };
    let client = Client::new(pass.clone());
    let decided = client
        .check_halt(&shared.node)
        .and_then(|()| decide(shared, &client, append));
    match decided {
        Err(problem) => {
            reply.problem(&problem);
            Verdict::Answered
        }
        Ok(answer) => {
            // Its memory is used again.
            let mut reply = std::mem::take(reply);
            Verdict::Written(WrittenReply {
                reply: Box::pin(async move {
                    match answer.await {
                        Ok(answer) => answer.write_to(&mut reply),
                        Err(problem) => reply.problem(&problem),
                    }
                    reply
                }),
                pass: pass.clone(),
            })
        }
    }
}

/// Returns the value of a field that is not empty.
fn present(value: &str) -> Option<&[u8]> {
    Some(value.as_bytes()).filter(|value| !value.is_empty())
}

/// An append as both the router and the fast path read it.
struct AppendRequest<'a> {
    name: Name,
    fields: Fields<'a>,
    body: &'a [u8],
}

/// The answer to a successful append.
struct AppendAnswer<'a> {
    messages: Ready<'a>,
    appended: Appended,
}

/// Decides an append. Returns the answer, which waits until the messages are on disk.
fn decide<'a>(
    shared: &Shared,
    client: &Client,
    request: AppendRequest<'a>,
) -> Result<impl Future<Output = Result<AppendAnswer<'a>, Problem>> + Send + use<'a>, Problem> {
    let AppendRequest { name, fields, body } = request;
    let conversations = of(shared)?;
    let append: Append<'a> = body::parse(body)?;
    let expect = fields.expected(append.expect)?;
    let key = fields.idempotency_key()?;
    let ready = Ready::new(append.messages, key)?;
    let (charged, decided) = {
        let messages = &ready.messages();
        let batch = Batch { expect, messages };
        let charged = client.charge_bytes(&shared.node, batch.size() as u64)?;
        (charged, append_at_once(conversations, &name, batch)?)
    };
    let decided = decided.ok_or_else(|| {
        let (body, key) = (Bytes::copy_from_slice(body), key.map(str::to_owned));
        append_off_thread(shared.clone(), name, expect, key, body)
    });
    Ok(async move {
        let pending = match decided {
            Ok(pending) => pending,
            Err(later) => later.await?,
        };
        let appended = charged_and_durable(charged, pending).await?;
        Ok(AppendAnswer {
            messages: ready,
            appended,
        })
    })
}

/// Appends in memory, or returns `None`. The appends of all connections that the thread serves in one
/// pass are one round, and go to the disk together.
pub(super) fn append_at_once(
    conversations: &Conversations,
    name: &Name,
    batch: Batch<'_>,
) -> Result<Option<Pending<Appended>>, ConversationError> {
    let round = take_from_pass(|round| conversations.is_round(round));
    let round = round.unwrap_or_else(|| Box::new(conversations.round()));
    let appended = conversations.append_at_once(&round, name, batch);
    // On a thread without passes, the round ends here.
    leave_to_pass(&mut Some(round));
    appended
}

/// Appends on a blocking thread, after reading from disk what the decision needs.
async fn append_off_thread(
    shared: Shared,
    name: Name,
    expect: Option<u64>,
    key: Option<String>,
    body: Bytes,
) -> Result<Pending<Appended>, Problem> {
    off_thread(move || {
        let request: Append<'_> = body::parse(&body)?;
        let ready = Ready::new(request.messages, key.as_deref())?;
        let messages = &ready.messages();
        Ok(of(&shared)?.append(&name, Batch { expect, messages })?)
    })
    .await
}

impl AppendAnswer<'_> {
    fn status(&self) -> StatusCode {
        match self.appended.deduplicated == self.messages.ids().len() {
            true => StatusCode::OK,
            false => StatusCode::CREATED,
        }
    }

    fn document(&self) -> AppendedDocument<'_> {
        AppendedDocument::of_ids(self.messages.ids(), &self.appended)
    }

    fn into_response(self) -> Response {
        let etag = [(header::ETAG, etag(self.appended.head_seq))];
        (self.status(), etag, json(&self.document())).into_response()
    }

    fn write_to(&self, reply: &mut Reply) {
        reply.clear(self.status(), "application/json");
        reply.field_with("ETag", |out| {
            out.push(b'"');
            push_number(out, self.appended.head_seq);
            out.push(b'"');
        });
        push_json(&mut reply.body, &self.document());
    }
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
    within_write_limit(charged_and_durable(charged, pending)).await
}

async fn charged_and_durable<T, E>(
    charged: Option<Durable>,
    pending: platform::Pending<T, E>,
) -> Result<T, Problem>
where
    E: From<NotDurable>,
    Problem: From<E>,
{
    let outcome = pending.await?;
    if let Some(charged) = charged {
        charged.await.map_err(not_durable)?;
    }
    Ok(outcome)
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

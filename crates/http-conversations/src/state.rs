//! The state of a conversation: create, show, change and erase.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use conversation_service::{Change, ChangeResult, Conversations, Lifecycle, Settings, View};
use http_api::body::{self, wrong_at};
use http_api::time::push_rfc3339;
use http_api::{Client, Problem, Shared};
use json::Text;
use model::{ErrorCode, Name};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::append::{answered, etag, json_bytes};
use super::incoming::metadata;
use super::outgoing::{push, push_json, push_member, push_metadata, push_number, push_text};
use super::place::{Conversation, Fields, expected_version, of};
use super::policy::{PolicyDocument, push_policy};

/// Largest request body, in bytes: metadata and the other settings.
const BODY_MAX: usize = 2 << 20;

/// Most attempts of a change when concurrent changes interfere.
const ATTEMPTS: usize = 16;

/// New settings of a conversation. Absent fields keep their values.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Settings)]
pub(crate) struct SettingsDocument<'a> {
    /// A JSON object, stored byte for byte. `PUT` replaces it, `PATCH` merges into it (RFC 7396).
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
    /// Seconds after the last message until the conversation is erased; 0 for never.
    #[serde(default)]
    ttl_s: Option<u64>,
    /// Number of newest messages to keep; slightly more may be kept. 0 keeps all.
    #[serde(default)]
    keep_last: Option<u64>,
    /// Bytes of newest messages to keep; slightly more may be kept. 0 keeps all.
    #[serde(default)]
    keep_bytes: Option<u64>,
    /// Name of the agent that answers; empty for none.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    agent: Option<Text<'a>>,
    /// Explicit participants, in place of earlier ones. Writers and readers participate regardless.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<String>>)]
    participants: Option<Vec<Text<'a>>>,
    /// Default policy of the conversation's windows; a request may override it.
    #[serde(default)]
    context: Option<PolicyDocument>,
    /// True makes the conversation read-only.
    #[serde(default)]
    archived: Option<bool>,
}

impl SettingsDocument<'_> {
    /// Returns the settings with these changes; `None` if nothing changes.
    fn settings(&self, before: Settings) -> Result<Option<Settings>, Problem> {
        let is_kept = self.keep_last.is_none() && self.keep_bytes.is_none();
        let is_nothing = self.ttl_s.is_none() && self.agent.is_none();
        if is_kept && is_nothing && self.participants.is_none() && self.context.is_none() {
            return Ok(None);
        }
        let mut settings = before;
        if let Some(ttl_s) = self.ttl_s {
            let too_long = || wrong_at("ttl_s", "too large");
            settings.ttl_ms = ttl_s.checked_mul(1000).ok_or_else(too_long)?;
        }
        settings.keep_last = self.keep_last.unwrap_or(settings.keep_last);
        settings.keep_bytes = self.keep_bytes.unwrap_or(settings.keep_bytes);
        if let Some(agent) = &self.agent {
            settings.agent = agent.0.clone().into_owned();
        }
        if let Some(participants) = &self.participants {
            let names = participants.iter().map(|it| it.0.clone().into_owned());
            settings.participants = names.collect();
        }
        if let Some(policy) = &self.context {
            let changed = policy.applied_to(settings.context);
            settings.context = changed.map_err(|reason| wrong_at("context", &reason))?;
        }
        Ok(Some(settings))
    }
}

/// An answer that is being streamed.
#[derive(Serialize, ToSchema)]
#[schema(as = Streaming)]
pub(crate) struct StreamingDocument<'a> {
    /// Number of the draft, as in watchers' events.
    draft: u64,
    /// Id of the future message.
    #[schema(example = "a-9")]
    mid: &'a str,
    /// Author; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
}

/// A conversation with its settings and state.
#[derive(ToSchema)]
#[schema(as = Conversation)]
#[expect(
    dead_code,
    reason = "it documents what `push_view` writes byte by byte"
)]
pub(crate) struct ConversationDocument {
    /// `org/namespace/id`.
    #[schema(example = "default/default/support-42")]
    name: String,
    /// Sequence number of the newest message; 0 for none.
    head_seq: u64,
    /// Sequence number of the oldest stored message; `head_seq` + 1 if there is none.
    start_seq: u64,
    /// Number of changes of this state, except cursors.
    version: u64,
    /// Creation time; absent if the first message created the conversation.
    created_at: Option<String>,
    archived: bool,
    #[schema(value_type = Object)]
    metadata: (),
    ttl_s: Option<u64>,
    keep_last: Option<u64>,
    keep_bytes: Option<u64>,
    agent: Option<String>,
    participants: Option<Vec<String>>,
    context: PolicyDocument,
    /// Summary that replaces older messages in a window.
    #[schema(value_type = Option<Object>)]
    summary: (),
    /// Sequence number of the last message that a clear erased; absent if there was no clear.
    cleared_seq: Option<u64>,
    /// Read position of each participant.
    #[schema(value_type = Object)]
    cursors: (),
    /// Conversation and message that this one was copied from.
    #[schema(value_type = Option<Object>)]
    forked_from: (),
    /// Answers that are being streamed; absent if there are none.
    streaming: Option<Vec<StreamingDocument<'static>>>,
}

/// Create a conversation or change its settings.
///
/// Idempotent. Absent fields keep their values.
#[utoipa::path(
    put, path = "/conversations/{id}", tag = "conversations", operation_id = "put_conversation",
    params(
        ("id" = String, Path, description = "Id of the conversation, 1 to 128 of `A-Z a-z 0-9 . _ : -`"),
        ("If-Match" = Option<String>, Header, description = "Required version of the conversation"),
    ),
    request_body = SettingsDocument,
    responses(
        (status = 200, description = "The conversation was changed", body = ConversationDocument),
        (status = 201, description = "The conversation was created", body = ConversationDocument),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased", body = http_api::ProblemDocument),
        (status = 412, description = "The conversation has another version", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn put(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    change(&shared, &name, &headers, body, Merge::Replaces).await
}

/// Change a conversation's settings; metadata is merged.
#[utoipa::path(
    patch, path = "/conversations/{id}", tag = "conversations", operation_id = "patch_conversation",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("If-Match" = Option<String>, Header, description = "Required version of the conversation"),
    ),
    request_body = SettingsDocument,
    responses(
        (status = 200, description = "The conversation was changed", body = ConversationDocument),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased", body = http_api::ProblemDocument),
        (status = 412, description = "The conversation has another version", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn patch(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    change(&shared, &name, &headers, body, Merge::Merges).await
}

/// Get a conversation with its settings and state.
#[utoipa::path(
    get, path = "/conversations/{id}", tag = "conversations", operation_id = "get_conversation",
    params(("id" = String, Path, description = "Id of the conversation")),
    responses(
        (status = 200, description = "The conversation", body = ConversationDocument,
            headers(("ETag" = String, description = "Version of the conversation"))),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn get(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
) -> Result<Response, Problem> {
    let view = answered(of(&shared)?.get(&name)?).await?;
    Ok(shown(StatusCode::OK, &view))
}

/// Erase a conversation: its bytes are removed from disk, and its name cannot be used again.
#[utoipa::path(
    delete, path = "/conversations/{id}", tag = "conversations", operation_id = "delete_conversation",
    params(("id" = String, Path, description = "Id of the conversation")),
    responses(
        (status = 204, description = "The conversation was erased"),
        (status = 403, description = "The token may not use the conversation's name", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased before", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn delete(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    client: Client,
) -> Result<Response, Problem> {
    client.check(&name)?;
    answered(of(&shared)?.delete(&name)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Erase all messages and the summary of a conversation.
///
/// Settings, metadata and read marks stay, and the next message gets the next sequence number. The
/// ids of the erased messages are forgotten. An answer that is being streamed becomes a message
/// after the clear.
#[utoipa::path(
    post, path = "/conversations/{id}/clear", tag = "conversations", operation_id = "clear",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("If-Match" = Option<String>, Header,
            description = "Required sequence number of the newest message, as in `\"41\"`"),
    ),
    responses(
        (status = 200, description = "The conversation after the clear", body = ConversationDocument),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 403, description = "The token may not use the conversation's name", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 409, description = "The conversation is archived", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased", body = http_api::ProblemDocument),
        (status = 412, description = "The newest message has another sequence number: `head_seq`", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn clear(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    client: Client,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    client.check(&name)?;
    let expect = Fields::of(&headers).expected(None)?;
    let cleared = answered(of(&shared)?.clear(&name, expect)?).await?;
    Ok(shown(StatusCode::OK, &cleared.view))
}

/// The effect of given metadata on stored metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// The metadata is replaced. A conversation that does not exist is created.
    Replaces,
    /// The metadata is merged.
    Merges,
}

async fn change(
    shared: &Shared,
    name: &Name,
    headers: &HeaderMap,
    body: Body,
    merge: Merge,
) -> Result<Response, Problem> {
    let conversations = of(shared)?;
    let body = body::read_json(headers, body, BODY_MAX).await?;
    let empty: &[u8] = b"{}";
    let body = if body.is_empty() { empty } else { &body };
    let expect = expected_version(headers)?;
    let changed = apply(conversations, name, expect, body, merge).await?;
    let status = match changed.is_created {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok(shown(status, &changed.view))
}

/// Applies a settings document in JSON to a conversation.
pub(super) async fn apply(
    conversations: &Conversations,
    name: &Name,
    expect: Option<u64>,
    json: &[u8],
    merge: Merge,
) -> Result<ChangeResult, Problem> {
    let document: SettingsDocument<'_> = body::parse(json)?;
    let metadata = match document.metadata {
        Some(_) => {
            let text = metadata(document.metadata);
            Some(text.map_err(|reason| wrong_at("metadata", &reason))?)
        }
        None => None,
    };
    put_document(conversations, name, expect, &document, metadata, merge).await
}

/// Fills absent fields from the current state; repeats that if the state has changed meanwhile.
async fn put_document(
    conversations: &Conversations,
    name: &Name,
    expect: Option<u64>,
    document: &SettingsDocument<'_>,
    metadata: Option<&str>,
    merge: Merge,
) -> Result<ChangeResult, Problem> {
    for _ in 0..ATTEMPTS {
        let before = match conversations.get(name) {
            Ok(pending) => Some(answered(pending).await?),
            Err(refusal) if refusal.code() == ErrorCode::NotFound && merge == Merge::Replaces => {
                None
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let version = before.as_ref().map_or(0, |view| view.state.version);
        let (known, settings) = match before {
            Some(view) => (view.state.metadata, view.state.settings),
            None => Default::default(),
        };
        let change = Change::Put {
            metadata: metadata.map(|metadata| match merge {
                Merge::Replaces => metadata.as_bytes().to_vec(),
                Merge::Merges => merged(&known, metadata).into_bytes(),
            }),
            settings: document.settings(settings)?,
            is_archived: document.archived,
        };
        let changed = conversations.change(name, expect.or(Some(version)), &change);
        let outcome = match changed {
            Ok(pending) => answered(pending).await,
            Err(refusal) => Err(refusal.into()),
        };
        match outcome {
            Err(problem)
                if problem.status == StatusCode::PRECONDITION_FAILED && expect.is_none() => {}
            outcome => return outcome,
        }
    }
    let detail = "other clients keep changing the conversation at the same time: try again";
    Err(Problem::of(ErrorCode::Busy, detail))
}

fn merged(known: &[u8], change: &str) -> String {
    let known = std::str::from_utf8(known).unwrap_or_default();
    let known = if known.is_empty() { "{}" } else { known };
    let change = if change.is_empty() { "{}" } else { change };
    json::merge(known, change, json::Null::Removes)
}

/// Returns the answer that shows a conversation.
pub(super) fn shown(status: StatusCode, view: &View) -> Response {
    let mut out = Vec::new();
    push_view(&mut out, view);
    if !view.streaming.is_empty() {
        // Replaces the closing brace by one more member.
        out.pop();
        push_member(&mut out, "streaming");
        let streaming = view.streaming.iter().map(|it| StreamingDocument {
            draft: it.draft,
            mid: &it.id,
            from: Some(&*it.from).filter(|from| !from.is_empty()),
        });
        push_json(&mut out, &streaming.collect::<Vec<_>>());
        push(&mut out, b"}");
    }
    let tag = [(header::ETAG, etag(view.state.version))];
    (status, tag, json_bytes(out)).into_response()
}

/// Appends a conversation's state as JSON.
pub(super) fn push_view(out: &mut Vec<u8>, view: &View) {
    let state = &view.state;
    push(out, b"{\"name\":");
    push_text(out, &view.name);
    for (name, number) in [
        ("head_seq", view.head_seq),
        ("start_seq", view.start_seq),
        ("version", state.version),
    ] {
        push_member(out, name);
        push_number(out, number);
    }
    if state.created_ms > 0 {
        push_member(out, "created_at");
        push(out, b"\"");
        push_rfc3339(out, state.created_ms);
        push(out, b"\"");
    }
    push_member(out, "archived");
    let is_archived = state.lifecycle == Lifecycle::Archived;
    push(out, if is_archived { b"true" } else { b"false" });
    push_member(out, "metadata");
    push_metadata(out, &state.metadata);
    if state.settings.ttl_ms > 0 {
        push_member(out, "ttl_s");
        push_number(out, state.settings.ttl_ms / 1000);
    }
    for (name, number) in [
        ("keep_last", state.settings.keep_last),
        ("keep_bytes", state.settings.keep_bytes),
    ] {
        if number > 0 {
            push_member(out, name);
            push_number(out, number);
        }
    }
    if !state.settings.agent.is_empty() {
        push_member(out, "agent");
        push_text(out, &state.settings.agent);
    }
    if !state.settings.participants.is_empty() {
        push_member(out, "participants");
        push_json(out, &state.settings.participants);
    }
    push_member(out, "context");
    push_policy(out, &state.settings.context);
    if let Some(summary) = &state.summary {
        push_member(out, "summary");
        super::summary::push_summary(out, summary);
    }
    if let Some(cleared) = state.cleared {
        push_member(out, "cleared_seq");
        push_number(out, cleared.through_seq);
    }
    push_member(out, "cursors");
    push(out, b"{");
    for (index, (who, seq)) in state.cursors.iter().enumerate() {
        if index > 0 {
            push(out, b",");
        }
        push_text(out, who);
        push(out, b":");
        push_number(out, seq);
    }
    push(out, b"}");
    if let Some(origin) = &state.origin {
        push_member(out, "forked_from");
        push(out, b"{\"conversation\":");
        push_text(out, &origin.conversation);
        push_member(out, "seq");
        push_number(out, origin.seq);
        push(out, b"}");
    }
    push(out, b"}");
}

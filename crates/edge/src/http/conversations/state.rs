//! What a conversation is besides its messages: created, looked at, changed, erased.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use model::{ErrorCode, Name};
use node::conversations::{Change, Changed, Conversations, Lifecycle, Settings, View};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::append::{answered, etag, json_bytes};
use super::incoming::metadata;
use super::outgoing::{push, push_json, push_metadata, push_number, push_text};
use super::place::{Conversation, expected_version, of};
use super::policy::{PolicyDocument, push_policy};
use crate::http::Shared;
use crate::http::body::{self, wrong_at};
use crate::http::problem::Problem;
use crate::http::quotas::Client;
use crate::http::time::push_rfc3339;
use crate::json::{self, Text};

/// Bytes of a body, at most: metadata and what is around it.
const BODY_MAX: usize = 2 << 20;

/// How often a change is tried again when another came in between.
const ATTEMPTS: usize = 16;

/// What is to be so from now on; whatever is not said stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Settings)]
pub(crate) struct SettingsDocument<'a> {
    /// An object, kept byte for byte. `PUT` replaces it, `PATCH` merges into it (RFC 7396).
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
    /// The conversation is erased so many seconds after its last message; 0 for never.
    #[serde(default)]
    ttl_s: Option<u64>,
    /// So many of its newest messages are kept, and not many more; 0 for all of them.
    #[serde(default)]
    keep_last: Option<u64>,
    /// So many bytes of its newest messages are kept, and not many more; 0 for all of them.
    #[serde(default)]
    keep_bytes: Option<u64>,
    /// The webhook that answers it, empty for none.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    agent: Option<Text<'a>>,
    /// Who takes part, whether he wrote or read anything or not, in place of those named before.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<String>>)]
    participants: Option<Vec<Text<'a>>>,
    /// How its windows are cut, unless a request says otherwise.
    #[serde(default)]
    context: Option<PolicyDocument>,
    /// An archived conversation is read only.
    #[serde(default)]
    archived: Option<bool>,
}

impl SettingsDocument<'_> {
    /// The settings with these in place of the old ones; `None` if nothing is said about them.
    fn settings(&self, before: Settings) -> Result<Option<Settings>, Problem> {
        let is_kept = self.keep_last.is_none() && self.keep_bytes.is_none();
        let is_nothing = self.ttl_s.is_none() && self.agent.is_none();
        if is_kept && is_nothing && self.participants.is_none() && self.context.is_none() {
            return Ok(None);
        }
        let mut settings = before;
        if let Some(ttl_s) = self.ttl_s {
            let too_long = || wrong_at("ttl_s", "that is too long");
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
    /// Its number, as in the events of watchers.
    draft: u64,
    /// The id of the message that it becomes.
    #[schema(example = "a-9")]
    mid: &'a str,
    /// Absent if nobody in particular writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
}

/// How a conversation stands.
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
    /// The number of the newest message; 0 for none.
    head_seq: u64,
    /// The number of the oldest that is kept; one above the newest when none is.
    start_seq: u64,
    /// Counts the changes of what stands here, but for cursors.
    version: u64,
    /// When it was created, if that was before its first message.
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
    /// What stands for its older messages in a window.
    #[schema(value_type = Option<Object>)]
    summary: (),
    /// How far each participant has read.
    #[schema(value_type = Object)]
    cursors: (),
    /// What it was copied from.
    #[schema(value_type = Option<Object>)]
    forked_from: (),
    /// Answers that are being streamed; absent if there are none.
    streaming: Option<Vec<StreamingDocument<'static>>>,
}

/// Create a conversation or change what it is.
///
/// Idempotent; whatever is not said stays as it is.
#[utoipa::path(
    put, path = "/conversations/{id}", tag = "conversations", operation_id = "put_conversation",
    params(
        ("id" = String, Path, description = "The conversation, 1 to 128 of `A-Z a-z 0-9 . _ : -`"),
        ("If-Match" = Option<String>, Header, description = "The version that it must have"),
    ),
    request_body = SettingsDocument,
    responses(
        (status = 200, description = "Changed", body = ConversationDocument),
        (status = 201, description = "Created", body = ConversationDocument),
        (status = 400, description = "Something in the request is wrong", body = crate::http::openapi::ProblemDocument),
        (status = 410, description = "It was erased", body = crate::http::openapi::ProblemDocument),
        (status = 412, description = "It has another version", body = crate::http::openapi::ProblemDocument),
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

/// Change what a conversation is; its metadata are merged.
#[utoipa::path(
    patch, path = "/conversations/{id}", tag = "conversations", operation_id = "patch_conversation",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("If-Match" = Option<String>, Header, description = "The version that it must have"),
    ),
    request_body = SettingsDocument,
    responses(
        (status = 200, description = "Changed", body = ConversationDocument),
        (status = 400, description = "Something in the request is wrong", body = crate::http::openapi::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = crate::http::openapi::ProblemDocument),
        (status = 410, description = "It was erased", body = crate::http::openapi::ProblemDocument),
        (status = 412, description = "It has another version", body = crate::http::openapi::ProblemDocument),
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

/// How a conversation stands.
#[utoipa::path(
    get, path = "/conversations/{id}", tag = "conversations", operation_id = "get_conversation",
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 200, description = "It", body = ConversationDocument,
            headers(("ETag" = String, description = "Its version"))),
        (status = 404, description = "There is no such conversation", body = crate::http::openapi::ProblemDocument),
        (status = 410, description = "It was erased", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn get(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
) -> Result<Response, Problem> {
    let view = answered(of(&shared)?.get(&name)?).await?;
    Ok(shown(StatusCode::OK, &view))
}

/// Erase a conversation: its bytes leave the disk, its name is not used again.
#[utoipa::path(
    delete, path = "/conversations/{id}", tag = "conversations", operation_id = "delete_conversation",
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 204, description = "Erased"),
        (status = 403, description = "The token may not use the conversation's name", body = crate::http::openapi::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = crate::http::openapi::ProblemDocument),
        (status = 410, description = "It was erased before", body = crate::http::openapi::ProblemDocument),
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

/// What metadata do to those that are there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// They take their place; and a conversation that is not there is created.
    Replaces,
    /// They are merged into them.
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

/// Makes a conversation what a document says, in JSON.
pub(super) async fn apply(
    conversations: Conversations<'_>,
    name: &Name,
    expect: Option<u64>,
    json: &[u8],
    merge: Merge,
) -> Result<Changed, Problem> {
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

/// What is not said is taken from what is there; if that has changed meanwhile, once more.
async fn put_document(
    conversations: Conversations<'_>,
    name: &Name,
    expect: Option<u64>,
    document: &SettingsDocument<'_>,
    metadata: Option<&str>,
    merge: Merge,
) -> Result<Changed, Problem> {
    for _ in 0..ATTEMPTS {
        let before = match conversations.get(name) {
            Ok(pending) => Some(answered(pending).await?),
            Err(refusal) if refusal.code == ErrorCode::NotFound && merge == Merge::Replaces => None,
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
    let detail = "others change the conversation all the time";
    Err(Problem::of(ErrorCode::Busy, detail))
}

fn merged(known: &[u8], change: &str) -> String {
    let known = std::str::from_utf8(known).unwrap_or_default();
    let known = if known.is_empty() { "{}" } else { known };
    let change = if change.is_empty() { "{}" } else { change };
    json::merge(known, change, json::Null::Removes)
}

/// The answer that shows how a conversation stands.
pub(super) fn shown(status: StatusCode, view: &View) -> Response {
    let mut out = Vec::new();
    push_view(&mut out, view);
    if !view.streaming.is_empty() {
        // The end of the object moves behind one more member.
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

/// Appends how a conversation stands.
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

/// Appends the name of a member that is not the first.
pub(super) fn push_member(out: &mut Vec<u8>, name: &str) {
    push(out, b",\"");
    push(out, name.as_bytes());
    push(out, b"\":");
}

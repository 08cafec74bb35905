//! Summaries of older messages, and read positions of participants.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use conversation_service::{Change, PartKind, Summary, estimated_tokens};
use http_api::body::{self, wrong_at};
use http_api::{Problem, Shared};
use message_json::facts;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::append::{answered, etag, json, json_bytes};
use super::outgoing::{push, push_member, push_number};
use super::place::{Behind, Conversation, expected_version, of};
use json as text;

/// Largest request body, in bytes.
const BODY_MAX: usize = 2 << 20;

/// A summary that replaces all messages up to one in windows. The messages stay stored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSummary)]
pub(crate) struct SummaryDocument<'a> {
    /// Sequence number of the last message that the summary covers.
    #[schema(example = 309)]
    through_seq: u64,
    /// Message to show to a model instead: a JSON object, stored byte for byte.
    #[serde(borrow)]
    #[schema(value_type = Object)]
    message: &'a RawValue,
    /// Token count of the summary; else estimated as a quarter of its bytes.
    #[serde(default)]
    tokens: Option<u32>,
    /// True if `tokens` is an estimate.
    #[serde(default)]
    estimated: bool,
}

impl SummaryDocument<'_> {
    /// Validates the document and returns the summary.
    pub(super) fn summary(&self) -> Result<Summary, Problem> {
        let message = self.message.get();
        if !message.starts_with('{') {
            return Err(wrong_at("message", "must be an object"));
        }
        if text::depth(message.as_bytes()) > text::DEPTH_MAX {
            return Err(wrong_at(
                "message",
                "objects and arrays are nested too deep",
            ));
        }
        if has_loose_call(message) {
            let reason = "contains a tool call without its result, or a result without its call";
            return Err(wrong_at("message", reason));
        }
        Ok(Summary {
            through_seq: self.through_seq,
            tokens: self
                .tokens
                .unwrap_or_else(|| estimated_tokens(message.len())),
            is_estimated: self.estimated || self.tokens.is_none(),
            message: message.as_bytes().to_vec(),
        })
    }
}

/// Returns true if a message contains a tool call without its result, or a result without its call.
fn has_loose_call(message: &str) -> bool {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow)]
        parts: Option<&'a RawValue>,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        tool_calls: Option<Vec<IgnoredAny>>,
        #[serde(default)]
        tool_call_id: Option<IgnoredAny>,
    }
    let Ok(message) = serde_json::from_str::<Parts<'_>>(message) else {
        return false;
    };
    let is_half = message.tool_calls.is_some_and(|calls| !calls.is_empty());
    if is_half || message.tool_call_id.is_some() {
        return true;
    }
    let mut facts = Vec::new();
    for parts in [message.parts, message.content].into_iter().flatten() {
        // A value that is not an array of parts has no calls.
        let _ = facts::extract(parts.get().as_bytes(), &mut facts);
    }
    let calls = |kind| {
        let of_kind = facts.iter().filter(move |fact| fact.kind == kind);
        of_kind.map(|fact| fact.call).collect::<BTreeSet<_>>()
    };
    calls(PartKind::ToolCall) != calls(PartKind::ToolResult)
}

/// Read position of a participant.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Cursor)]
pub(crate) struct CursorDocument {
    /// Sequence number of the last message that was read.
    #[schema(example = 42)]
    seq: u64,
}

/// Set the summary of older messages.
#[utoipa::path(
    put, path = "/conversations/{id}/summary", tag = "context", operation_id = "put_summary",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("If-Match" = Option<String>, Header, description = "Required version of the conversation"),
    ),
    request_body = SummaryDocument,
    responses(
        (status = 204, description = "The summary was set"),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 412, description = "The conversation has another version", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn put_summary(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read_json(&headers, body, BODY_MAX).await?;
    let document: SummaryDocument<'_> = body::parse(&body)?;
    let summary = document.summary()?;
    let expect = expected_version(&headers)?;
    let change = Change::Summarize(Some(summary));
    let changed = answered(of(&shared)?.change(&name, expect, &change)?).await?;
    let tag = [(header::ETAG, etag(changed.view.state.version))];
    Ok((StatusCode::NO_CONTENT, tag).into_response())
}

/// Remove the summary.
#[utoipa::path(
    delete, path = "/conversations/{id}/summary", tag = "context", operation_id = "delete_summary",
    params(("id" = String, Path, description = "Id of the conversation")),
    responses(
        (status = 204, description = "The conversation has no summary now"),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn delete_summary(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
) -> Result<Response, Problem> {
    let change = Change::Summarize(None);
    answered(of(&shared)?.change(&name, None, &change)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Get the summary as it was set.
#[utoipa::path(
    get, path = "/conversations/{id}/summary", tag = "context", operation_id = "get_summary",
    params(("id" = String, Path, description = "Id of the conversation")),
    responses(
        (status = 200, description = "The summary", body = SummaryDocument),
        (status = 404, description = "There is no such conversation, or no summary", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn get_summary(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
) -> Result<Response, Problem> {
    let view = answered(of(&shared)?.get(&name)?).await?;
    let Some(summary) = &view.state.summary else {
        let detail = format!("conversation `{name}` has no summary");
        return Err(Problem::of(model::ErrorCode::NotFound, detail));
    };
    let mut out = Vec::new();
    push_summary(&mut out, summary);
    Ok(json_bytes(out))
}

/// Appends a summary as JSON.
pub(super) fn push_summary(out: &mut Vec<u8>, summary: &Summary) {
    push(out, b"{\"through_seq\":");
    push_number(out, summary.through_seq);
    push_member(out, "message");
    push(out, &summary.message);
    push_member(out, "tokens");
    push_number(out, u64::from(summary.tokens));
    if summary.is_estimated {
        push(out, b",\"estimated\":true");
    }
    push(out, b"}");
}

/// Set a participant's read position. It only moves forward.
#[utoipa::path(
    put, path = "/conversations/{id}/cursors/{who}", tag = "conversations",
    operation_id = "put_cursor",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("who" = String, Path, description = "Name of the participant"),
    ),
    request_body = CursorDocument,
    responses(
        (status = 200, description = "The read position now", body = CursorDocument),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 413, description = "Too many participants", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn put_cursor(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    Behind(who): Behind,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read_json(&headers, body, BODY_MAX).await?;
    let CursorDocument { seq } = body::parse(&body)?;
    let change = Change::Cursor {
        who: who.clone(),
        seq,
    };
    let changed = answered(of(&shared)?.change(&name, None, &change)?).await?;
    let seq = changed.view.state.cursors.get(&who).unwrap_or(seq);
    Ok(json(&CursorDocument { seq }))
}

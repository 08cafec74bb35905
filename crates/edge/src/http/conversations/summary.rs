//! What stands for older messages, and how far somebody has read.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use node::conversations::{Change, PartKind, Summary, estimated_tokens};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::append::{answered, etag, json, json_bytes};
use super::outgoing::{push, push_number};
use super::place::{Behind, Conversation, expected_version, of};
use super::state::push_member;
use crate::facts;
use crate::http::Shared;
use crate::http::body::{self, wrong_at};
use crate::http::problem::Problem;
use crate::json as text;

/// Bytes of a body, at most.
const BODY_MAX: usize = 2 << 20;

/// What stands for everything up to a message, in windows only: the messages stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSummary)]
pub(crate) struct SummaryDocument<'a> {
    /// The last message that it stands for.
    #[schema(example = 309)]
    through_seq: u64,
    /// The message that a model is shown instead: an object, kept byte for byte.
    #[serde(borrow)]
    #[schema(value_type = Object)]
    message: &'a RawValue,
    /// What it costs a model; else a quarter of its bytes.
    #[serde(default)]
    tokens: Option<u32>,
    /// Whether `tokens` is an estimate.
    #[serde(default)]
    estimated: bool,
}

impl SummaryDocument<'_> {
    /// What it says, if it can be said.
    pub(super) fn summary(&self) -> Result<Summary, Problem> {
        let message = self.message.get();
        if !message.starts_with('{') {
            return Err(wrong_at("message", "an object is expected"));
        }
        if text::depth(message.as_bytes()) > text::DEPTH_MAX {
            return Err(wrong_at("message", "objects and arrays lie too deep"));
        }
        if has_loose_call(message) {
            let reason = "a call of a tool without its result, or a result without its call";
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

/// Whether a message that stands alone has a call of a tool without its result, or the reverse.
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
        // What is no array of parts has no calls.
        let _ = facts::extract(parts.get().as_bytes(), &mut facts);
    }
    let calls = |kind| {
        let of_kind = facts.iter().filter(move |fact| fact.kind == kind);
        of_kind.map(|fact| fact.call).collect::<BTreeSet<_>>()
    };
    calls(PartKind::ToolCall) != calls(PartKind::ToolResult)
}

/// How far somebody has read.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Cursor)]
pub(crate) struct CursorDocument {
    /// The last message that was read.
    #[schema(example = 42)]
    seq: u64,
}

/// Say what stands for older messages.
#[utoipa::path(
    put, path = "/conversations/{id}/summary", tag = "context", operation_id = "put_summary",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("If-Match" = Option<String>, Header, description = "The version that it must have"),
    ),
    request_body = SummaryDocument,
    responses(
        (status = 204, description = "From now on it does"),
        (status = 400, description = "Something in the request is wrong", body = crate::http::openapi::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = crate::http::openapi::ProblemDocument),
        (status = 412, description = "It has another version", body = crate::http::openapi::ProblemDocument),
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

/// Let nothing stand for older messages any more.
#[utoipa::path(
    delete, path = "/conversations/{id}/summary", tag = "context", operation_id = "delete_summary",
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 204, description = "There is none now"),
        (status = 404, description = "There is no such conversation", body = crate::http::openapi::ProblemDocument),
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

/// The summary as it was given.
#[utoipa::path(
    get, path = "/conversations/{id}/summary", tag = "context", operation_id = "get_summary",
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 200, description = "It", body = SummaryDocument),
        (status = 404, description = "There is no such conversation, or no summary", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn get_summary(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
) -> Result<Response, Problem> {
    let view = answered(of(&shared)?.get(&name)?).await?;
    let Some(summary) = &view.state.summary else {
        let detail = format!("nothing stands for messages of `{name}`");
        return Err(Problem::of(model::ErrorCode::NotFound, detail));
    };
    let mut out = Vec::new();
    push_summary(&mut out, summary);
    Ok(json_bytes(out))
}

/// Appends a summary.
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

/// Say how far somebody has read; it only moves forward.
#[utoipa::path(
    put, path = "/conversations/{id}/cursors/{who}", tag = "conversations",
    operation_id = "put_cursor",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("who" = String, Path, description = "The participant"),
    ),
    request_body = CursorDocument,
    responses(
        (status = 200, description = "Where it is now", body = CursorDocument),
        (status = 400, description = "Something in the request is wrong", body = crate::http::openapi::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = crate::http::openapi::ProblemDocument),
        (status = 413, description = "Too many participants", body = crate::http::openapi::ProblemDocument),
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

//! The context window of a conversation: the messages to send to a model.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use conversation_service::{ContextRead, PartKind, Strategy};
use http_api::{Problem, Shared, off_thread, query};
use serde::{Deserialize, Serialize};
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, ToSchema};

use super::append::{answered, json_bytes};
use super::outgoing::{MessageDocument, push, push_json, push_member, push_number};
use super::place::{Conversation, of};
use super::policy::{PolicyDocument, kind_word};
use super::window::push_shown;

/// Query parameters that override the conversation's window policy.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct How {
    /// Most tokens of the window and `reserve` together.
    #[param(example = 8000)]
    budget: Option<u32>,
    /// Tokens of the budget to leave for the answer.
    reserve: Option<u32>,
    /// Strategy: `budget`, `last_n`, `skip_parts` or `manual`.
    policy: Option<String>,
    /// Most messages, for `last_n` and `skip_parts`.
    n: Option<u32>,
    /// Roles whose messages always stay, separated by commas.
    keep: Option<String>,
    /// Kinds of parts to drop first, separated by commas.
    drop_first: Option<String>,
    /// Number of newest turns with tool calls whose parts are not dropped.
    keep_tool_turns: Option<u32>,
    /// Step in which the window's beginning moves, as a fraction of the budget.
    step: Option<f64>,
}

impl How {
    fn document(self) -> PolicyDocument {
        let words = |text: String| {
            let words = text.split(',').map(|word| word.trim().to_owned());
            words.filter(|word| !word.is_empty()).collect()
        };
        PolicyDocument {
            policy: self.policy,
            budget: self.budget,
            reserve: self.reserve,
            keep: self.keep.map(words),
            drop_first: self.drop_first.map(words),
            keep_tool_turns: self.keep_tool_turns,
            step: self.step,
            n: self.n,
        }
    }
}

/// A context window.
#[derive(Serialize, ToSchema)]
#[schema(as = Context)]
pub(crate) struct ContextDocument {
    /// Messages for the model in order: the summary's message, kept instructions, whole turns. A
    /// dropped part is missing or replaced by a short text.
    #[schema(schema_with = messages_schema)]
    messages: Vec<MessageDocument>,
    /// Token count of all messages.
    #[schema(example = 7410)]
    tokens: u64,
    #[schema(example = 8000)]
    budget: u32,
    /// Sequence number of the first message in the window.
    #[schema(example = 310)]
    from_seq: u64,
    /// Sequence number of the last message that the summary covers; absent without a summary. The
    /// summary's message is the first.
    summary_seq: Option<u64>,
    /// Sequence number of the newest message.
    #[schema(example = 384)]
    head_seq: u64,
    /// Number of dropped parts by kind.
    #[schema(value_type = Object)]
    dropped: (),
    /// True if `tokens` is an estimate.
    estimated: bool,
}

/// Returns the schema of messages; the summary's message may be any object.
fn messages_schema() -> Schema {
    let any = AnyOfBuilder::new()
        .item(Ref::from_schema_name("Message"))
        .item(ObjectBuilder::new().schema_type(Type::Object));
    Schema::Array(ArrayBuilder::new().items(any).build())
}

/// Get the messages to send to a model, within a token budget.
///
/// The window has whole turns, never separates a tool call from its result, and never exceeds the
/// budget. Its beginning stays the same as long as possible, so that a provider's prompt cache is
/// effective.
#[utoipa::path(
    get, path = "/conversations/{id}/context", tag = "context", operation_id = "context",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        How,
        ("If-None-Match" = Option<String>, Header, description = "Entity tag of a window that the client has"),
    ),
    responses(
        (status = 200, description = "The window", body = ContextDocument,
            headers(("ETag" = String, description = "Entity tag of the window"))),
        (status = 304, description = "The window has not changed"),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 413, description = "A single turn exceeds the budget; `seq` and `tokens` describe it", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn context(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let how: How = query(&uri)?;
    let view = answered(of(&shared)?.get(&name)?).await?;
    let policy = how.document().applied_to(view.state.settings.context);
    let policy = policy.map_err(|reason| Problem::invalid(format!("the query: {reason}")))?;
    let budget = policy.budget;
    if budget == 0 && policy.strategy == Strategy::Budget {
        let detail = "a budget is required: `?budget=8000`, or `context` in the settings";
        return Err(Problem::invalid(detail));
    }
    // Older messages may have to be read from disk.
    let cutting = move || Ok(of(&shared)?.context(&name, Some(&policy))?);
    let pending = off_thread(cutting).await?;
    let out = render(&answered(pending).await?, budget)?;
    let tag = format!("\"{:016x}\"", model::fnv1a_64(out.iter().copied()));
    let known = headers.get(header::IF_NONE_MATCH);
    let is_known = known
        .and_then(|known| known.to_str().ok())
        .is_some_and(|known| {
            known
                .split(',')
                .any(|known| known.trim().trim_start_matches("W/") == tag)
        });
    let tag = HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""));
    let tag = [(header::ETAG, tag)];
    Ok(match is_known {
        true => (StatusCode::NOT_MODIFIED, tag).into_response(),
        false => (tag, json_bytes(out)).into_response(),
    })
}

pub(super) fn render(read: &ContextRead, budget: u32) -> Result<Vec<u8>, Problem> {
    let mut out = Vec::new();
    push(&mut out, b"{\"messages\":[");
    if let Some(summary) = &read.summary {
        push(&mut out, &summary.message);
    }
    for (index, shown) in read.messages().enumerate() {
        let shown = shown?;
        if index > 0 || read.summary.is_some() {
            push(&mut out, b",");
        }
        push_shown(&mut out, &shown.message, shown.treated);
    }
    push(&mut out, b"]");
    let cut = &read.cut;
    for (name, number) in [
        ("tokens", cut.tokens),
        ("budget", u64::from(budget)),
        ("from_seq", cut.first_shown_seq()),
    ] {
        push_member(&mut out, name);
        push_number(&mut out, number);
    }
    if let Some(summary) = &read.summary {
        push_member(&mut out, "summary_seq");
        push_number(&mut out, summary.through_seq);
    }
    push_member(&mut out, "head_seq");
    push_number(&mut out, cut.head_seq);
    push_member(&mut out, "dropped");
    push_dropped(&mut out, &cut.dropped);
    push_member(&mut out, "estimated");
    push(&mut out, if cut.is_estimated { b"true" } else { b"false" });
    push(&mut out, b"}");
    Ok(out)
}

fn push_dropped(out: &mut Vec<u8>, counts: &[u32]) {
    let mut dropped = std::collections::BTreeMap::new();
    for (kind, count) in PartKind::ALL.into_iter().zip(counts) {
        if *count > 0 {
            *dropped.entry(kind_word(kind)).or_insert(0) += count;
        }
    }
    push_json(out, &dropped);
}

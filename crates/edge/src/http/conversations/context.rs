//! The window of a conversation: the messages that go to a model.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use node::conversations::{ContextRead, PartKind, Strategy};
use serde::{Deserialize, Serialize};
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, ToSchema};

use super::append::{answered, json_bytes};
use super::outgoing::{MessageDocument, push, push_json, push_number};
use super::place::{Conversation, of, query};
use super::policy::{PolicyDocument, kind_word};
use super::state::push_member;
use super::window::push_shown;
use crate::http::problem::Problem;
use crate::http::{Shared, off_thread};

/// How the window is cut, where that differs from the conversation's own settings.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct How {
    /// Tokens that the window costs at most, together with `reserve`.
    #[param(example = 8000)]
    budget: Option<u32>,
    /// Tokens of the budget that are left for the answer.
    reserve: Option<u32>,
    /// `budget`, `last_n`, `skip_parts` or `manual`.
    policy: Option<String>,
    /// Of `last_n` and `skip_parts`: messages, at most.
    n: Option<u32>,
    /// Roles, with commas between them.
    keep: Option<String>,
    /// Kinds of parts, with commas between them.
    drop_first: Option<String>,
    /// The newest turns with tools in them keep the parts that would be dropped.
    keep_tool_turns: Option<u32>,
    /// How far the cut moves at once, as a part of the budget.
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

/// A window.
#[derive(Serialize, ToSchema)]
#[schema(as = Context)]
pub(crate) struct ContextDocument {
    /// What goes to the model, in order: the summary's message, instructions that are kept, whole
    /// turns. A part that is left out is not there, or a few words stand for what was in it.
    #[schema(schema_with = messages_schema)]
    messages: Vec<MessageDocument>,
    /// What all of it costs.
    #[schema(example = 7410)]
    tokens: u64,
    #[schema(example = 8000)]
    budget: u32,
    /// The message that the window begins with.
    #[schema(example = 310)]
    from_seq: u64,
    /// The last message that the summary stands for; absent without one. Its message is the first.
    summary_seq: Option<u64>,
    /// The newest message.
    #[schema(example = 384)]
    head_seq: u64,
    /// Parts that are not shown as they are, by kind.
    #[schema(value_type = Object)]
    dropped: (),
    /// Whether `tokens` is an estimate.
    estimated: bool,
}

/// Messages; the summary's is as it was put.
fn messages_schema() -> Schema {
    let any = AnyOfBuilder::new()
        .item(Ref::from_schema_name("Message"))
        .item(ObjectBuilder::new().schema_type(Type::Object));
    Schema::Array(ArrayBuilder::new().items(any).build())
}

/// The messages to send to a model, within a budget.
///
/// Whole turns; a call of a tool is never parted from its result; never above the budget; the same
/// beginning for as long as that fits, so that a provider's cache holds.
#[utoipa::path(
    get, path = "/conversations/{id}/context", tag = "context", operation_id = "context",
    params(
        ("id" = String, Path, description = "The conversation"),
        How,
        ("If-None-Match" = Option<String>, Header, description = "The window that is known already"),
    ),
    responses(
        (status = 200, description = "The window", body = ContextDocument,
            headers(("ETag" = String, description = "Of this window"))),
        (status = 304, description = "It is the one that is known"),
        (status = 400, description = "Something in the request is wrong", body = crate::http::openapi::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = crate::http::openapi::ProblemDocument),
        (status = 413, description = "One turn alone is above the budget: `seq`, `tokens`", body = crate::http::openapi::ProblemDocument),
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
        let detail = "a budget is needed: `?budget=8000`, or `context` in the settings";
        return Err(Problem::invalid(detail));
    }
    // Old messages may have to come from the disk.
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

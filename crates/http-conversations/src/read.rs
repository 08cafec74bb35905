//! Pages of messages; with `Accept: text/event-stream`, all existing messages and then new ones.

use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use conversation_service::{ConversationError, Page, PageRead, Side};
use http_api::{Problem, Shared, off_thread, query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::append::{answered, json_bytes};
use super::outgoing::{MessageDocument, push, push_message, push_number};
use super::place::{Behind, Conversation, of};
use super::tail;

/// Default number of messages of a page.
const LIMIT: usize = 100;

/// Most messages of a page.
const LIMIT_MAX: usize = 1_000;

/// Most bytes of a page. A single larger message is returned nevertheless.
const BYTES_MAX: usize = 4 << 20;

/// Query parameters of a page.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// The oldest messages after this sequence number; 0 for the first ones. With
    /// `text/event-stream`, `Last-Event-ID` takes precedence.
    after: Option<u64>,
    /// The newest messages before this sequence number.
    before: Option<u64>,
    /// This number of newest messages.
    last: Option<usize>,
    /// Most messages of the page; default 100, at most 1000.
    limit: Option<usize>,
    /// Most bytes of the page; default and maximum 4194304. A single larger message is returned
    /// nevertheless.
    max_bytes: Option<usize>,
}

impl Which {
    fn page(&self) -> Result<Page, Problem> {
        let given = [
            self.after.is_some(),
            self.before.is_some(),
            self.last.is_some(),
        ];
        if given.into_iter().filter(|is| *is).count() > 1 {
            let detail = "`after`, `before` and `last` cannot be combined";
            return Err(Problem::invalid(detail));
        }
        if self.last.is_some() && self.limit.is_some() {
            return Err(Problem::invalid("`last` and `limit` cannot be combined"));
        }
        let limit = self.last.or(self.limit).unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            let detail = format!("`limit` must be from 1 to {LIMIT_MAX}, not {limit}");
            return Err(Problem::invalid(detail));
        }
        let side = match (self.before, self.last) {
            (Some(seq), _) => Side::Before(seq),
            (None, Some(_)) => Side::Last,
            (None, None) => Side::After(self.after.unwrap_or(0)),
        };
        Ok(Page {
            side,
            limit,
            bytes: self.max_bytes.unwrap_or(BYTES_MAX).clamp(1, BYTES_MAX),
        })
    }
}

/// A page of messages.
#[derive(Serialize, ToSchema)]
#[schema(as = Page)]
pub(crate) struct PageDocument {
    /// Consecutive messages in order.
    messages: Vec<MessageDocument>,
    /// Sequence number of the newest message.
    head_seq: u64,
    /// Sequence number of the oldest stored message; `head_seq` + 1 if there is none.
    start_seq: u64,
}

/// Read messages, or follow a conversation.
///
/// A page has the oldest messages after `after`, the newest before `before`, or the `last` ones.
/// With `Accept: text/event-stream`, the answer is every message after `after` (or
/// `Last-Event-ID`), then `event: head`, then new messages, without gaps or duplicates.
#[utoipa::path(
    get, path = "/conversations/{id}/messages", tag = "messages",
    operation_id = "read",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        Which,
        ("Last-Event-ID" = Option<String>, Header, description = "Position from which an event stream continues"),
    ),
    responses(
        (status = 200, description = "Messages", content(
            (PageDocument = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 400, description = "The request is invalid", body = http_api::ProblemDocument),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased, or the messages were trimmed: `start_seq` is the oldest", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn read(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let which: Which = query(&uri)?;
    if wants_events(&headers) {
        let is_page = which.before.is_some() || which.last.is_some() || which.limit.is_some();
        if is_page || which.max_bytes.is_some() {
            let detail = "an event stream accepts `after` only, not `before`, `last`, `limit` or `max_bytes`";
            return Err(Problem::invalid(detail));
        }
        return tail::follow(&shared, &name, which.after.unwrap_or(0), &headers);
    }
    let page = which.page()?;
    off_thread(move || {
        let read = of(&shared)?.read(&name, page)?;
        render(&read).map(json_bytes)
    })
    .await
}

/// Read one message by its id.
///
/// A message that was just appended is returned once it is on disk. A message that is being streamed
/// is not found until its answer has ended.
#[utoipa::path(
    get, path = "/conversations/{id}/messages/{message}", tag = "messages",
    operation_id = "read_message",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("message" = String, Path, description = "Id of the message"),
    ),
    responses(
        (status = 200, description = "The message", body = MessageDocument),
        (status = 404, description = "There is no such conversation, or it has no such message", body = http_api::ProblemDocument),
        (status = 410, description = "The conversation was erased", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn read_message(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    Behind(id): Behind,
) -> Result<Response, Problem> {
    let pending = {
        let (shared, name, id) = (shared.clone(), name.clone(), id.clone());
        off_thread(move || Ok(of(&shared)?.seq_of(&name, &id)?)).await?
    };
    let seq = answered(pending).await?;
    off_thread(move || {
        let page = Page {
            side: Side::After(seq - 1),
            limit: 1,
            bytes: BYTES_MAX,
        };
        let read = of(&shared)?.read(&name, page)?;
        // It may have been cleared or retracted meanwhile.
        let message = read.messages().next().transpose()?;
        let message = message.filter(|it| it.seq == seq);
        let message = message.ok_or(ConversationError::NoMessage { id })?;
        let mut out = Vec::new();
        push_message(&mut out, message.seq, message.at_ms, &message.view);
        Ok(json_bytes(out))
    })
    .await
}

pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter();
    let mut texts = values.filter_map(|value| value.to_str().ok());
    texts.any(|text| text.contains("text/event-stream"))
}

fn render(read: &PageRead) -> Result<Vec<u8>, Problem> {
    let mut out = Vec::new();
    push(&mut out, b"{\"messages\":[");
    for (index, message) in read.messages().enumerate() {
        let message = message?;
        if index > 0 {
            push(&mut out, b",");
        }
        push_message(&mut out, message.seq, message.at_ms, &message.view);
    }
    push(&mut out, b"],\"head_seq\":");
    push_number(&mut out, read.head_seq);
    push(&mut out, b",\"start_seq\":");
    push_number(&mut out, read.start_seq);
    push(&mut out, b"}");
    Ok(out)
}

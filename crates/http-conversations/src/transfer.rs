//! Export and import of one conversation as JSON lines.
//!
//! The first line is the conversation's state (`{"conversation":{…}}`), each further line a
//! message. An export that is imported and exported again is the same, including each message's
//! status and original time; only sequence numbers and event offsets differ.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use conversation_service::{Appended, Batch, Item, Pending, Watch};
use http_api::{Client, Problem, Shared, body, off_thread};
use http_body::Frame;
use message_json::chunks::Framing;
use model::Name;
use platform::Durable;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::TYPES;
use super::append::{answered, charged_and_answered, json};
use super::bulk::{Head, Importing};
use super::incoming::{Imported, Ready};
use super::outgoing::{push, push_message};
use super::place::{Conversation, loaded, of};
use super::state::push_view;

/// Lines are collected up to this size before they are sent.
const FRAME_SIZE: usize = 64 << 10;

/// Largest import, in bytes. Larger ones are split by the client; each piece is a valid import.
const IMPORT_MAX: usize = 64 << 20;

/// Approximate size of a batch of appended messages, in bytes.
const BATCH_SIZE: usize = 1 << 20;

/// Export a conversation as JSON lines.
#[utoipa::path(
    get, path = "/conversations/{id}/export", tag = "transfer", operation_id = "export",
    params(("id" = String, Path, description = "Id of the conversation")),
    responses(
        (status = 200, description = "The conversation's state, then one line per message", body = String,
            content_type = "application/jsonl"),
        (status = 404, description = "There is no such conversation", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn export(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
) -> Result<Response, Problem> {
    let lines = Lines::of(&shared, &name).await?;
    let content_type = [(header::CONTENT_TYPE, "application/jsonl")];
    Ok((content_type, Body::new(lines)).into_response())
}

/// An export body, read as the client reads, up to the newest message at that time.
pub(super) struct Lines {
    /// The first line, until it is sent.
    first: Vec<u8>,
    watch: Option<Watch>,
}

impl Lines {
    /// Starts an export of a conversation.
    pub(super) async fn of(shared: &Shared, name: &Name) -> Result<Self, Problem> {
        loaded(shared, name).await?;
        let conversations = of(shared)?;
        let view = answered(conversations.get(name)?).await?;
        let mut first = b"{\"conversation\":".to_vec();
        push_view(&mut first, &view);
        push(&mut first, b"}\n");
        let after = view.start_seq.saturating_sub(1);
        Ok(Self {
            first,
            watch: Some(conversations.watch(name, after)?),
        })
    }
}

impl http_body::Body for Lines {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let mut out = std::mem::take(&mut this.first);
        while let Some(watch) = &mut this.watch {
            if out.len() >= FRAME_SIZE {
                break;
            }
            let item = match watch.poll_next(cx) {
                Poll::Ready(item) => item,
                Poll::Pending if out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            };
            match item.and_then(|item| push_line(&mut out, &item)) {
                Ok(true) => {}
                Ok(false) => this.watch = None,
                // An incomplete export must not look complete.
                Err(refusal) => {
                    this.watch = None;
                    let error = std::io::Error::other(refusal.to_string());
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        if out.is_empty() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))))
    }
}

/// Appends a line. Returns false after the last one.
fn push_line(
    out: &mut Vec<u8>,
    item: &Item,
) -> Result<bool, conversation_service::ConversationError> {
    let Item::Message(stored) = item else {
        return Ok(!matches!(item, Item::Head { .. }));
    };
    let view = stored.view()?;
    let begin = out.len();
    push_message(out, stored.seq, stored.at_ms, &view);
    // Line breaks between JSON tokens are replaced by spaces.
    for byte in &mut out[begin..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    push(out, b"\n");
    Ok(true)
}

/// The result of an import.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Imported)]
pub(crate) struct ImportDocument {
    /// Number of appended messages.
    pub(super) appended: usize,
    /// Number of messages that existed already.
    pub(super) deduplicated: usize,
    /// Sequence number of the newest message.
    pub(super) head_seq: u64,
}

/// Import messages into a conversation.
///
/// Messages are appended in order, in batches. A message that exists already is not appended again,
/// so an interrupted import can be repeated. Each message keeps its `status` and `at`. If the first
/// line is `{"conversation":{…}}`, its settings replace the existing ones as by `PUT`, its read
/// positions are set, and the conversation is archived at the end if the exported one was.
#[utoipa::path(
    post, path = "/conversations/{id}/import", tag = "transfer", operation_id = "import",
    params(("id" = String, Path, description = "Id of the conversation")),
    request_body(content(
        (String = "application/jsonl"),
        (String = "application/x-ndjson"),
        (String = "application/json-lines"),
        (String = "application/x-jsonlines"),
    )),
    responses(
        (status = 200, description = "All messages were imported", body = ImportDocument),
        (status = 400, description = "`line` is invalid; the lines before its batch were imported", body = http_api::ProblemDocument),
        (status = 409, description = "An id is used by another message", body = http_api::ProblemDocument),
        (status = 415, description = "The body is not JSON lines", body = http_api::ProblemDocument),
        (status = 429, description = "A quota on appended bytes is exceeded at `line`; the lines before it were imported. Retry after `retry_ms`", body = http_api::ProblemDocument),
    )
)]
pub(super) async fn import(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = read_lines(&headers, body).await?;
    let mut importing = Importing::of(name, client);
    for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(Head { conversation }) if index == 0 => {
                let made = importing.made(&shared, conversation).await;
                importing = made.map_err(|problem| problem.with("line", 1))?;
            }
            _ => importing.push(&shared, index, body.slice_ref(line)).await?,
        }
    }
    Ok(json(&importing.end(&shared).await?))
}

/// A batch of messages: lines of the body with their line numbers.
#[derive(Default)]
pub(super) struct Lined {
    lines: Vec<(usize, Bytes)>,
    size: usize,
}

impl Lined {
    pub(super) fn push(&mut self, index: usize, line: Bytes) {
        self.size += line.len();
        self.lines.push((index + 1, line));
    }

    pub(super) fn is_full(&self, shared: &Shared) -> Result<bool, Problem> {
        let max = of(shared)?.options().limits.batch_messages_max;
        Ok(self.lines.len() >= max || self.size >= BATCH_SIZE)
    }

    pub(super) async fn append(
        &mut self,
        shared: &Shared,
        client: &Client,
        name: &Name,
        done: &mut ImportDocument,
    ) -> Result<(), Problem> {
        let lined = Arc::new(std::mem::take(self));
        let count = lined.lines.len();
        if count == 0 {
            return Ok(());
        }
        let appending = {
            let (shared, client) = (shared.clone(), client.clone());
            let (name, lined) = (name.clone(), lined.clone());
            move || lined.append_here(&shared, &client, &name)
        };
        let appended = match off_thread(appending).await {
            Ok((charged, pending)) => charged_and_answered(charged, pending).await,
            Err(problem) => Err(problem),
        };
        let appended = appended.map_err(|problem| located(problem, &lined.lines))?;
        done.appended += count - appended.deduplicated;
        done.deduplicated += appended.deduplicated;
        Ok(())
    }

    /// Appends the batch. May wait for the disk, to look up ids of existing messages.
    fn append_here(
        &self,
        shared: &Shared,
        client: &Client,
        name: &Name,
    ) -> Result<(Option<Durable>, Pending<Appended>), Problem> {
        let (mut messages, mut originals) = (Vec::new(), Vec::new());
        for (number, line) in &self.lines {
            let at_line = |problem: Problem| problem.with("line", *number);
            let message: Imported<'_> = body::parse(line).map_err(at_line)?;
            originals.push(message.original().map_err(at_line)?);
            messages.push(message.into_incoming());
        }
        let ready = Ready::new(messages, None)?;
        let messages = ready.messages();
        let batch = Batch {
            expect: None,
            messages: &messages,
        };
        let charged = client.charge_bytes(&shared.node, batch.size() as u64);
        let first = self.lines.first().map_or(0, |(number, _)| *number);
        let charged = charged.map_err(|problem| problem.with("line", first))?;
        let pending = of(shared)?.import(name, batch, &originals)?;
        Ok((charged, pending))
    }
}

/// Adds the line number of the message that a problem is about.
fn located(problem: Problem, lines: &[(usize, Bytes)]) -> Problem {
    let index = problem
        .extra
        .get("index")
        .and_then(serde_json::Value::as_u64);
    match index.and_then(|index| lines.get(index as usize)) {
        Some((number, _)) => problem.with("line", *number),
        None => problem,
    }
}

/// Reads a body of JSON lines.
pub(super) async fn read_lines(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let lines = TYPES.iter().filter(|(_, it)| *it == Framing::Lines);
    let types: Vec<_> = lines.map(|(name, _)| (*name, ())).collect();
    body::expect_type(headers, &types)?;
    body::read(headers, body, IMPORT_MAX).await
}

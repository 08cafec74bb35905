//! A conversation as JSON lines: all of it out, and in again.
//!
//! The first line is what the conversation is (`{"conversation":{…}}`), each other line a message as
//! it is read. What comes out goes in and comes out the same, how each message ended and when it was
//! first appended included; only its place (its number, its event) is its own in each conversation.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use http_body::Frame;
use model::Name;
use node::conversations::{Appended, Batch, Item, Pending, Watch};
use node::quotas::Durable;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::TYPES;
use super::append::{answered, charged_and_answered, json};
use super::bulk::{Head, Importing};
use super::incoming::{Imported, Ready};
use super::outgoing::{push, push_message};
use super::place::{Conversation, loaded, of};
use super::state::push_view;
use crate::chunks::Framing;
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::quotas::Client;
use crate::http::{Shared, off_thread};

/// Lines are gathered up to this size before they are written.
const FRAME_SIZE: usize = 64 << 10;

/// Bytes of an import, at most: larger ones are sent in pieces, each of which is one.
const IMPORT_MAX: usize = 64 << 20;

/// Bytes that are appended at once, about.
const BATCH_SIZE: usize = 1 << 20;

/// Export a conversation as JSON lines.
#[utoipa::path(
    get, path = "/conversations/{id}/export", tag = "transfer", operation_id = "export",
    params(("id" = String, Path, description = "The conversation")),
    responses(
        (status = 200, description = "What it is, then a message a line", body = String,
            content_type = "application/jsonl"),
        (status = 404, description = "There is no such conversation", body = crate::http::openapi::ProblemDocument),
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

/// Reads on as the client reads, to the newest message there is when it arrives.
pub(super) struct Lines {
    /// What comes before the messages.
    first: Vec<u8>,
    watch: Option<Watch>,
}

impl Lines {
    /// The lines of a conversation.
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
                // An export that is not whole must not look whole.
                Err(refusal) => {
                    this.watch = None;
                    let error = std::io::Error::other(refusal.message);
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

/// Whether more follows.
fn push_line(out: &mut Vec<u8>, item: &Item) -> Result<bool, node::conversations::Refusal> {
    let Item::Message(stored) = item else {
        return Ok(!matches!(item, Item::Head { .. }));
    };
    let view = stored.view()?;
    let begin = out.len();
    push_message(out, stored.seq, stored.at_ms, &view);
    // Between tokens a line's end is white space like any other.
    for byte in &mut out[begin..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    push(out, b"\n");
    Ok(true)
}

/// What an import did.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Imported)]
pub(crate) struct ImportDocument {
    /// Messages that were appended.
    pub(super) appended: usize,
    /// Messages that were there already.
    pub(super) deduplicated: usize,
    /// The number of the newest message.
    pub(super) head_seq: u64,
}

/// Append the messages of an export.
///
/// In order, in batches; a message that is there already is not appended again, so an import that was
/// interrupted is simply repeated. Each keeps its `status` and its `at`. If the first line is
/// `{"conversation":{…}}`, its settings take the place of those that are there, as `PUT` does it; its
/// read marks are set, and it is archived at the end if it was.
#[utoipa::path(
    post, path = "/conversations/{id}/import", tag = "transfer", operation_id = "import",
    params(("id" = String, Path, description = "The conversation")),
    request_body(content(
        (String = "application/jsonl"),
        (String = "application/x-ndjson"),
        (String = "application/json-lines"),
        (String = "application/x-jsonlines"),
    )),
    responses(
        (status = 200, description = "All of them are there", body = ImportDocument),
        (status = 400, description = "A line is wrong: `line`; those before its batch are there", body = crate::http::openapi::ProblemDocument),
        (status = 409, description = "An id stands for another message", body = crate::http::openapi::ProblemDocument),
        (status = 415, description = "The body is no JSON lines", body = crate::http::openapi::ProblemDocument),
        (status = 429, description = "The token is over a limit on what is appended: `retry_ms`, and `line`; those before it are there", body = crate::http::openapi::ProblemDocument),
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

/// Messages that go in together: lines of the body, each with its number.
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

    /// What is there already may stand on the disk.
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

/// The line of the message that a problem is about.
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

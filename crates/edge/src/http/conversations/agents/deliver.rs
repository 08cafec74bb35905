//! Calls of agents: what a node says is due, as a request; what comes back, as a message.
//!
//! An answer of one piece is appended. One that is streamed is shown to whoever watches while it
//! comes. 202 and 204 promise an answer by a message of the agent's own.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use model::ErrorCode;
use node::Handle;
use node::conversations::{Batch, DraftWriter, Finished, NewDraft, Refusal, Status};
use node::ports::Caller;
use node::ports::caller::{Body, CallError, Request, Response};
use node::webhooks::{Call, Retry};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::task::JoinSet;

use crate::chunks::{Assembly, Framing, Sizes, Splitter};
use crate::http::body::parse;
use crate::http::conversations::answer::TYPES;
use crate::http::conversations::context::render;
use crate::http::conversations::incoming::{Incoming, Ready};
use crate::http::conversations::outgoing::{push, push_number, push_text};
use crate::http::conversations::state::push_member;
use crate::http::problem::Problem;
use crate::json;

/// How long the whole of an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(3600);

/// How long the disk may take.
const DISK_LIMIT: Duration = Duration::from_secs(30);

/// Parts of earlier answers that are passed over.
const PARTS_MAX: u32 = 16;

/// How soon a failure to tend is tried again.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// Calls the agents of `node` for ever.
pub async fn call_agents(node: Handle, caller: Arc<dyn Caller>) {
    let mut calls = JoinSet::new();
    loop {
        let tending = node.clone();
        let tend = move || tending.webhooks().map(|it| it.tend());
        let tended = match tokio::task::spawn_blocking(tend).await {
            Ok(Some(Ok(tended))) => Some(tended),
            Ok(None) => return,
            Ok(Some(Err(refusal))) => {
                tracing::warn!(reason = refusal.message, "agents are not called now");
                None
            }
            Err(error) => {
                tracing::error!(%error, "looking after agents ended early");
                None
            }
        };
        let again_in = match tended {
            None => Some(FAILURE_PAUSE),
            Some(tended) => {
                for call in tended.calls {
                    calls.spawn(make(call, node.clone(), caller.clone()));
                }
                tended.again_in
            }
        };
        wait(&node, &mut calls, again_in).await;
    }
}

/// Waits for something to do.
async fn wait(node: &Handle, calls: &mut JoinSet<()>, again_in: Option<Duration>) {
    let mut pause = again_in.map(|pause| Box::pin(tokio::time::sleep(pause)));
    poll_fn(|cx| {
        while let Poll::Ready(Some(_)) = calls.poll_join_next(cx) {}
        let is_over = pause.as_mut().map(|pause| pause.as_mut().poll(cx));
        if is_over.is_some_and(|it| it.is_ready()) {
            return Poll::Ready(());
        }
        match node.webhooks() {
            Some(webhooks) => webhooks.poll_changed(cx),
            None => Poll::Ready(()),
        }
    })
    .await;
}

/// What became of a call.
enum Outcome {
    Answered,
    Later,
    /// Nobody waits for it any more.
    Ended,
    Failed {
        status: u16,
        again: Retry,
        reason: String,
    },
}

impl Outcome {
    fn failed(status: u16, again: Retry, reason: impl Into<String>) -> Self {
        Self::Failed {
            status,
            again,
            reason: reason.into(),
        }
    }

    /// What the agent said makes no sense.
    fn wrong(status: u16, reason: impl Into<String>) -> Self {
        Self::failed(status, Retry::Never, reason)
    }
}

impl From<CallError> for Outcome {
    fn from(error: CallError) -> Self {
        let again = match error {
            CallError::Refused(_) => Retry::Never,
            CallError::Lost(_) | CallError::TimedOut(_) => Retry::Later,
        };
        Self::failed(0, again, error.to_string())
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        let again = match refusal.code {
            ErrorCode::Unavailable | ErrorCode::Unconfirmed | ErrorCode::Busy => Retry::Later,
            ErrorCode::Internal => Retry::Later,
            _ => Retry::Never,
        };
        Self::failed(0, again, refusal.message)
    }
}

/// Makes a call and says what became of it.
async fn make(call: Call, node: Handle, caller: Arc<dyn Caller>) {
    let answering = tokio::time::timeout(ANSWER_LIMIT, ask(&call, &node, &*caller));
    let outcome = match answering.await {
        Ok(Ok(outcome) | Err(outcome)) => outcome,
        Err(_) => Outcome::failed(0, Retry::Later, "the answer has no end"),
    };
    match outcome {
        Outcome::Answered => call.answered(),
        Outcome::Later => call.later(),
        Outcome::Ended => call.failed(0, Retry::Later),
        Outcome::Failed {
            status,
            again,
            reason,
        } => {
            let (agent, attempt) = (call.agent(), call.attempt());
            tracing::warn!(agent, attempt, status, reason, "an agent has not answered");
            call.failed(status, again);
        }
    }
}

async fn ask(call: &Call, node: &Handle, caller: &dyn Caller) -> Result<Outcome, Outcome> {
    let settings = call.settings();
    let pending = call.context()?;
    let context = durable(pending).await?;
    let body = body(call, &context)?;
    let request = Request {
        target: settings.target.clone(),
        id: call.id(),
        at_s: node.ports().clock.unix_ms() / 1_000,
        secret: settings.secret.clone(),
        headers: settings.headers.clone(),
        body: body.into(),
        timeout: Duration::from_millis(settings.timeout_ms),
    };
    let mut calling = caller.call(request);
    let response = poll_fn(|cx| match call.poll_ended(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => calling.as_mut().poll(cx).map(Some),
    });
    let Some(response) = response.await else {
        return Err(Outcome::Ended);
    };
    hear(call, node, response?).await
}

async fn hear(call: &Call, node: &Handle, response: Response) -> Result<Outcome, Outcome> {
    let status = response.status;
    let essence = response.content_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    match status {
        202 | 204 => Ok(Outcome::Later),
        200..=299 => {
            let framing = TYPES.iter().find(|(name, _)| *name == essence);
            match framing {
                Some((_, framing)) => stream(call, node, *framing, response).await,
                None => append(call, node, &essence, response).await,
            }
        }
        408 | 429 | 500..=599 => {
            let again = response.retry_after.map_or(Retry::Later, Retry::After);
            Err(Outcome::failed(status, again, "its answer says so"))
        }
        _ => Err(Outcome::wrong(status, "its answer says so")),
    }
}

/// What is asked: `{delivery_id, conversation, from_seq, to_seq, attempt, context}`.
fn body(call: &Call, context: &node::conversations::ContextRead) -> Result<Vec<u8>, Outcome> {
    let mut out = Vec::new();
    push(&mut out, b"{\"delivery_id\":");
    push_text(&mut out, &call.id());
    push_member(&mut out, "conversation");
    push_text(&mut out, call.conversation().base());
    for (name, number) in [
        ("from_seq", call.from_seq()),
        ("to_seq", call.to_seq()),
        ("attempt", u64::from(call.attempt())),
    ] {
        push_member(&mut out, name);
        push_number(&mut out, number);
    }
    push_member(&mut out, "context");
    let budget = call.settings().context.as_ref().map_or(0, |it| it.budget);
    let window = render(context, budget);
    let window = window.map_err(|problem| Outcome::wrong(0, problem.detail))?;
    push(&mut out, &window);
    push(&mut out, b"}");
    Ok(out)
}

async fn durable<T>(pending: node::conversations::Pending<T>) -> Result<T, Refusal> {
    match tokio::time::timeout(DISK_LIMIT, pending).await {
        Ok(outcome) => outcome,
        Err(_) => Err((ErrorCode::Unconfirmed, "not on the disk in time".to_owned()).into()),
    }
}

/// The next piece of an answer; `Ok(None)` at its end.
async fn next(call: &Call, body: &mut Pin<Box<dyn Body>>) -> Result<Option<Bytes>, Outcome> {
    let next = poll_fn(|cx| match call.poll_ended(cx) {
        Poll::Ready(()) => Poll::Ready(Err(Outcome::Ended)),
        Poll::Pending => body.as_mut().poll_piece(cx).map(|it| Ok(it.transpose())),
    });
    Ok(next.await??)
}

/// An answer of one piece.
async fn append(
    call: &Call,
    node: &Handle,
    essence: &str,
    mut response: Response,
) -> Result<Outcome, Outcome> {
    let status = response.status;
    let conversations = node.conversations().ok_or_else(gone)?;
    let size_max = conversations.options().limits.message_bytes_max + (64 << 10);
    let mut whole = Vec::new();
    while let Some(piece) = next(call, &mut response.body).await? {
        if whole.len() + piece.len() > size_max {
            let reason = format!("its answer is larger than {size_max} bytes");
            return Err(Outcome::wrong(status, reason));
        }
        whole.extend_from_slice(&piece);
    }
    let text = match (essence, whole.trim_ascii()) {
        (_, b"") => return Ok(Outcome::Later),
        ("application/json", json) => match json.first() {
            Some(b'"') => text_message(json),
            _ => Ok(String::from_utf8_lossy(json).into_owned()),
        },
        ("" | "text/plain", _) => {
            let text = String::from_utf8_lossy(&whole);
            let mut quoted = String::new();
            json::push_string(&mut quoted, &text);
            text_message(quoted.as_bytes())
        }
        _ => Err(format!("its answer is of the type `{essence}`")),
    };
    let text = text.map_err(|reason| Outcome::wrong(status, reason))?;
    let wrong = |problem: Problem| Outcome::wrong(status, problem.detail);
    let json = with_role(text).map_err(wrong)?;
    let message: Incoming<'_> = parse(json.as_bytes()).map_err(wrong)?;
    let ready = Ready::new(vec![message], None).map_err(wrong)?;
    for parts in 0..PARTS_MAX {
        let id = call.answer_id(parts);
        let mut batch = ready.messages();
        for message in &mut batch {
            message.id = Some(&id);
            message.from = call.author();
        }
        let batch = Batch {
            expect: None,
            messages: &batch,
        };
        let appended = match conversations.append(call.conversation(), batch) {
            Ok(pending) => durable(pending).await,
            Err(refusal) => Err(refusal),
        };
        match appended {
            Ok(_) => return Ok(Outcome::Answered),
            Err(refusal) => {
                if let Some(outcome) = taken(call, refusal)? {
                    return Ok(outcome);
                }
            }
        }
    }
    Err(Outcome::wrong(
        status,
        "too many parts of answers are there",
    ))
}

/// What it means that the id of an answer is taken: `None` if only a part of one has it.
fn taken(call: &Call, refusal: Refusal) -> Result<Option<Outcome>, Outcome> {
    match (refusal.code, refusal.details.seq) {
        (ErrorCode::IdReused, Some(seq)) => match call.is_answer(seq)? {
            // The agent has answered by a message of its own.
            true => Ok(Some(Outcome::Answered)),
            false => Ok(None),
        },
        // It is being streamed by the agent itself.
        (ErrorCode::IdReused, None) => Ok(Some(Outcome::Later)),
        _ => Err(refusal.into()),
    }
}

fn gone() -> Outcome {
    Outcome::failed(0, Retry::Later, "the node keeps nothing")
}

/// An answer that is streamed.
async fn stream(
    call: &Call,
    node: &Handle,
    framing: Framing,
    mut response: Response,
) -> Result<Outcome, Outcome> {
    let conversations = node.conversations().ok_or_else(gone)?;
    let limits = conversations.options().limits;
    let mut writer = match open(call, node).await? {
        Ok(writer) => writer,
        Err(outcome) => return Ok(outcome),
    };
    let mut assembly = Assembly::new(Sizes::of(&limits));
    let mut splitter = Splitter::new(framing, limits.message_bytes_max);
    let outcome = read(
        call,
        &mut response,
        &mut splitter,
        &mut writer,
        &mut assembly,
    )
    .await;
    let (status, outcome) = match outcome {
        Ok(status) => (status, Outcome::Answered),
        Err((status, outcome)) => (status, outcome),
    };
    let finished = Finished {
        status,
        tokens: None,
        assembled: &assembly.message().into(),
    };
    let pending = writer.finish(finished)?;
    durable(pending).await?;
    match outcome {
        Outcome::Answered => Ok(Outcome::Answered),
        failed => Err(failed),
    }
}

/// Opens the draft of the answer; if there is an answer already, says what that means.
async fn open(call: &Call, node: &Handle) -> Result<Result<DraftWriter, Outcome>, Outcome> {
    let conversations = node.conversations().ok_or_else(gone)?;
    for parts in 0..PARTS_MAX {
        let draft = NewDraft {
            id: &call.answer_id(parts),
            role: "assistant",
            from: call.author(),
            metadata: b"",
        };
        let opened = match conversations.draft_open(call.conversation(), draft) {
            Ok(pending) => durable(pending).await,
            Err(refusal) => Err(refusal),
        };
        match opened {
            Ok(writer) => return Ok(Ok(writer)),
            Err(refusal) => {
                if let Some(outcome) = taken(call, refusal)? {
                    return Ok(Err(outcome));
                }
            }
        }
    }
    Err(Outcome::wrong(0, "too many parts of answers are there"))
}

/// What ends the reading of a stream.
enum End {
    Is(Status),
    Wrong(String),
}

type Broken = (Status, Outcome);

/// Reads to the end: the status of the message, and what went wrong.
async fn read(
    call: &Call,
    response: &mut Response,
    splitter: &mut Splitter,
    writer: &mut DraftWriter,
    assembly: &mut Assembly,
) -> Result<Status, Broken> {
    let broken =
        |status: u16, reason: String| (Status::Interrupted, Outcome::wrong(status, reason));
    loop {
        let next = poll_fn(|cx| {
            if call.poll_ended(cx).is_ready() {
                return Poll::Ready(Err((Status::Stopped, Outcome::Ended)));
            }
            if writer.poll_stopped(cx).is_ready() {
                return Poll::Ready(Ok(None));
            }
            response.body.as_mut().poll_piece(cx).map(|it| Ok(Some(it)))
        });
        let Some(piece) = next.await? else {
            // Somebody who watches wants no more of it: that is an answer.
            return Ok(Status::Stopped);
        };
        let mut take = |chunk: &[u8]| take(chunk, writer, assembly);
        let (taken, is_over) = match piece {
            Some(Ok(bytes)) => (splitter.feed(&bytes, &mut take), false),
            Some(Err(error)) => return Err((Status::Interrupted, error.into())),
            None => (splitter.finish(&mut take), true),
        };
        match taken {
            Err(End::Is(status)) => return Ok(status),
            Err(End::Wrong(reason)) => return Err(broken(response.status, reason)),
            Ok(()) if is_over => {
                let reason = "its stream has no `finish`".to_owned();
                let outcome = Outcome::failed(response.status, Retry::Later, reason);
                return Err((Status::Interrupted, outcome));
            }
            Ok(()) => {}
        }
    }
}

fn take(chunk: &[u8], writer: &mut DraftWriter, assembly: &mut Assembly) -> Result<(), End> {
    let text = std::str::from_utf8(chunk);
    let text = text.map_err(|_| End::Wrong("a chunk is not UTF-8".to_owned()))?;
    let ended = assembly.push(text);
    let ended = ended.map_err(|error| End::Wrong(error.to_string()))?;
    let pushed = writer.push(chunk);
    pushed.map_err(|refusal| End::Wrong(refusal.message))?;
    match ended {
        Some(ended) => Err(End::Is(ended.status())),
        None => Ok(()),
    }
}

impl From<crate::chunks::TooLong> for End {
    fn from(error: crate::chunks::TooLong) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// A message that says a JSON text.
fn text_message(quoted: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(quoted).map_err(|_| "its answer is not UTF-8".to_owned())?;
    Ok(format!(r#"{{"role":"assistant","content":{text}}}"#))
}

/// Whether a message says who its author is in the conversation.
#[derive(Deserialize)]
struct HasRole {
    #[serde(default)]
    role: Option<IgnoredAny>,
}

/// A message that does not say it is of an assistant.
fn with_role(json: String) -> Result<String, Problem> {
    let found: HasRole = parse(json.as_bytes())?;
    if found.role.is_some() {
        return Ok(json);
    }
    let fields = json.trim_start().strip_prefix('{').unwrap_or_default();
    Ok(match fields.trim_start().starts_with('}') {
        true => r#"{"role":"assistant"}"#.to_owned(),
        false => format!(r#"{{"role":"assistant",{fields}"#),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_a_role_is_of_an_assistant() {
        let check = |json: &str, expected: &str| {
            assert_eq!(with_role(json.to_owned()).unwrap(), expected);
        };
        check(
            r#"{"content":"a"}"#,
            r#"{"role":"assistant","content":"a"}"#,
        );
        check(r#" {}"#, r#"{"role":"assistant"}"#);
        check(r#"{"role":"tool"}"#, r#"{"role":"tool"}"#);
        assert!(with_role("[]".to_owned()).is_err());
        assert!(with_role("{".to_owned()).is_err());
    }
}

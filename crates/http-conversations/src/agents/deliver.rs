//! Calls of agents: turns due work of the node into requests, and answers into messages.
//!
//! A complete answer is appended ([`whole`]). A streamed one is shown to watchers while it arrives
//! ([`streamed`]). Status 202 or 204 promises an answer as a message of the agent's own. Work that
//! may wait for the disk runs off the threads that serve connections.

mod streamed;
mod trace;
mod whole;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use conversation_service::{ContextRead, ConversationError, Pending};
use model::ErrorCode;
use node::Node;
use tokio::task::JoinSet;
use webhooks::caller::{Body, CallError, Caller, Request, Response};
use webhooks::{Call, Retry};

use crate::answer::TYPES;
use crate::context::render;
use crate::outgoing::{push, push_member, push_number, push_text};
use http_api::Problem;

use self::trace::CallTrace;

/// Longest time for a complete answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(3600);

/// Bytes of a failed answer's body that a dead letter shows.
const REASON_SIZE_MAX: usize = 300;

/// Longest wait for the disk.
const DISK_LIMIT: Duration = Duration::from_secs(30);

/// Most parts of earlier answers to skip when choosing an answer's id.
const PARTS_MAX: u32 = 16;

/// Pause before due work is looked for again after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// Calls the agents of `node` until the node has no webhooks.
pub async fn call_agents(node: Node, caller: Arc<dyn Caller>) {
    let mut calls = JoinSet::new();
    loop {
        let tending = node.clone();
        let tend = move || tending.webhooks().map(|it| it.tend());
        let tended = match tokio::task::spawn_blocking(tend).await {
            Ok(Some(Ok(tended))) => Some(tended),
            Ok(None) => return,
            Ok(Some(Err(error))) => {
                let reason = error.to_string();
                tracing::warn!(reason, "calls of agents are suspended");
                None
            }
            Err(error) => {
                tracing::error!(%error, "the task that schedules agent calls failed");
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

/// Waits until work may be due, or a pause has passed.
async fn wait(node: &Node, calls: &mut JoinSet<()>, again_in: Option<Duration>) {
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

/// The outcome of a call.
enum Outcome {
    Answered,
    Later,
    /// The answer is no longer wanted.
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

    /// A failure that another call would not repair: the answer is invalid.
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

/// The reason why the work for an answer failed.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    /// The request to the conversation failed.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// The answer is not a valid message.
    #[error("{}", .0.detail)]
    Invalid(Problem),
    /// The node has no storage.
    #[error("the node has no storage")]
    NoStorage,
    /// The answer was not on disk in time.
    #[error("the write was not on disk in time")]
    Late,
    /// The task failed.
    #[error("the task failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl AnswerError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Conversation(error) => error.code(),
            Self::Invalid(problem) => problem.code,
            Self::NoStorage => ErrorCode::Unavailable,
            Self::Late => ErrorCode::Unconfirmed,
            Self::Task(_) => ErrorCode::Internal,
        }
    }
}

impl From<AnswerError> for Outcome {
    fn from(error: AnswerError) -> Self {
        let again = match error.code() {
            ErrorCode::Unavailable | ErrorCode::Unconfirmed | ErrorCode::Busy => Retry::Later,
            ErrorCode::Internal => Retry::Later,
            _ => Retry::Never,
        };
        Self::failed(0, again, error.to_string())
    }
}

impl From<ConversationError> for Outcome {
    fn from(error: ConversationError) -> Self {
        AnswerError::from(error).into()
    }
}

/// Makes a call and reports its outcome to the node.
async fn make(call: Call, node: Node, caller: Arc<dyn Caller>) {
    let answering = tokio::time::timeout(ANSWER_LIMIT, ask(&call, &node, &*caller));
    let outcome = match answering.await {
        Ok(Ok(outcome) | Err(outcome)) => outcome,
        Err(_) => Outcome::failed(0, Retry::Later, "the answer took longer than an hour"),
    };
    match outcome {
        Outcome::Answered => call.answered(),
        Outcome::Later => call.later(),
        Outcome::Ended => call.failed(0, Retry::Later, "the answer is no longer wanted"),
        Outcome::Failed {
            status,
            again,
            reason,
        } => {
            let (agent, attempt) = (call.agent(), call.attempt());
            tracing::warn!(agent, attempt, status, reason, "a call of an agent failed");
            call.failed(status, again, &reason);
        }
    }
}

async fn ask(call: &Call, node: &Node, caller: &dyn Caller) -> Result<Outcome, Outcome> {
    let settings = call.settings();
    let context = durable_off_thread(call.context()).await?;
    let body = body(call, &context)?;
    let mut trace = CallTrace::begin(call, node, &context);
    let request = Request {
        target: settings.target.clone(),
        id: call.id(),
        at_s: node.ports().clock.unix_ms() / 1_000,
        secret: settings.secret.clone(),
        headers: settings.headers.clone(),
        traceparent: trace.traceparent(),
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
    let outcome = match response {
        Ok(response) => {
            trace.set_status(response.status);
            hear(call, node, response).await
        }
        Err(error) => Err(error.into()),
    };
    if let Ok(Outcome::Failed { reason, .. }) | Err(Outcome::Failed { reason, .. }) = &outcome {
        trace.fail(reason);
    }
    outcome
}

async fn hear(call: &Call, node: &Node, mut response: Response) -> Result<Outcome, Outcome> {
    let status = response.status;
    let essence = response.content_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    match status {
        202 | 204 => Ok(Outcome::Later),
        200..=299 => {
            let framing = TYPES.iter().find(|(name, _)| *name == essence);
            match framing {
                Some((_, framing)) => streamed::hear(call, node, *framing, response).await,
                None => whole::hear(call, node, &essence, response).await,
            }
        }
        408 | 429 | 500..=599 => {
            let again = response.retry_after.map_or(Retry::Later, Retry::After);
            let reason = reason(call, &mut response).await?;
            Err(Outcome::failed(status, again, reason))
        }
        _ => Err(Outcome::wrong(status, reason(call, &mut response).await?)),
    }
}

/// Describes a failed answer: its status and the beginning of its body.
async fn reason(call: &Call, response: &mut Response) -> Result<String, Outcome> {
    let status = response.status;
    let piece = match next(call, &mut response.body).await {
        Ok(piece) => piece.unwrap_or_default(),
        Err(Outcome::Ended) => return Err(Outcome::Ended),
        Err(_) => Bytes::new(),
    };
    let text = String::from_utf8_lossy(&piece[..piece.len().min(REASON_SIZE_MAX)]);
    let text: String = text
        .trim_end_matches(char::REPLACEMENT_CHARACTER)
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    Ok(match text.trim() {
        "" => format!("the agent answered with status {status}"),
        text => format!("the agent answered with status {status}: {text}"),
    })
}

/// Builds the request body: `{delivery_id, conversation, from_seq, to_seq, attempt, context}`.
fn body(call: &Call, context: &ContextRead) -> Result<Vec<u8>, Outcome> {
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

/// Runs work that may wait for the disk on a blocking thread.
async fn off_thread<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, AnswerError>
where
    T: Send + 'static,
    E: Send + 'static,
    AnswerError: From<E>,
{
    Ok(tokio::task::spawn_blocking(work).await??)
}

/// Runs work on a blocking thread and waits until its result is on disk.
async fn durable_off_thread<T, E>(
    work: impl FnOnce() -> Result<Pending<T>, E> + Send + 'static,
) -> Result<T, AnswerError>
where
    T: Send + 'static,
    E: Send + 'static,
    AnswerError: From<E>,
{
    durable(off_thread(work).await?).await
}

async fn durable<T>(pending: Pending<T>) -> Result<T, AnswerError> {
    match tokio::time::timeout(DISK_LIMIT, pending).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(AnswerError::Late),
    }
}

/// Returns the next piece of an answer; `Ok(None)` at its end.
async fn next(call: &Call, body: &mut Pin<Box<dyn Body>>) -> Result<Option<Bytes>, Outcome> {
    let next = poll_fn(|cx| match call.poll_ended(cx) {
        Poll::Ready(()) => Poll::Ready(Err(Outcome::Ended)),
        Poll::Pending => body.as_mut().poll_piece(cx).map(|it| Ok(it.transpose())),
    });
    Ok(next.await??)
}

/// Interprets the refusal of an answer's id: the outcome of the call, or `None` if only a part of
/// an answer has this id.
async fn id_taken(call: &Call, error: AnswerError) -> Result<Option<Outcome>, Outcome> {
    let AnswerError::Conversation(refusal) = &error else {
        return Err(error.into());
    };
    match (refusal.code(), refusal.details().seq) {
        (ErrorCode::IdReused, Some(seq)) => match off_thread(call.is_answer(seq)).await? {
            // The agent has answered with a message of its own.
            true => Ok(Some(Outcome::Answered)),
            false => Ok(None),
        },
        // The agent is streaming the answer itself.
        (ErrorCode::IdReused, None) => Ok(Some(Outcome::Later)),
        _ => Err(error.into()),
    }
}

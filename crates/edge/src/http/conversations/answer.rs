//! Streamed answers: chunks in, one message at the end.
//!
//! Each chunk is checked, shown to whoever watches, and put together with the others. Whatever ends
//! the stream, what has come becomes the message: `finish` completes it, `abort` gives it up, somebody
//! may stop it, and everything else interrupts it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use model::{ErrorCode, Name};
use node::conversations::{DraftWriter, Finished, NewDraft, Status};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::append::{answered, etag, json};
use super::place::{Behind, Conversation, of, query};
use crate::chunks::{Assembly, ChunkError, Ended, Framing, Sizes, Splitter, TooLong};
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::{Shared, off_thread};

/// Who answers.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Author {
    /// What the author is in the conversation: `assistant` unless it is said.
    role: Option<String>,
    /// Who it is.
    from: Option<String>,
    /// What the message costs a model, if that is known before.
    tokens: Option<u32>,
}

/// What became of a stream.
#[derive(Serialize, ToSchema)]
#[schema(as = Answered)]
pub(crate) struct AnsweredDocument<'a> {
    /// The number of the message.
    #[schema(example = 43)]
    seq: u64,
    #[schema(example = "a-9")]
    id: &'a str,
    /// `complete`, `aborted`, `stopped` or `interrupted`.
    #[schema(example = "complete")]
    status: &'a str,
    /// The number of the conversation's newest message.
    head_seq: u64,
}

/// The types of body, and what separates chunks in each.
pub(super) const TYPES: [(&str, Framing); 5] = [
    ("application/jsonl", Framing::Lines),
    ("application/x-ndjson", Framing::Lines),
    ("application/json-lines", Framing::Lines),
    ("application/x-jsonlines", Framing::Lines),
    ("text/event-stream", Framing::Events),
];

/// Stream an answer.
///
/// The body is the AI SDK's UI message chunks, as JSON lines or as events, for as long as it takes;
/// whoever watches the conversation sees each at once. It becomes one message with `finish`, `abort`,
/// the end of the body or that of the connection, or when somebody stops it.
#[utoipa::path(
    post, path = "/conversations/{id}/messages/{message}/stream", tag = "messages",
    operation_id = "stream",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("message" = String, Path, description = "The id of the message that it becomes"),
        Author,
    ),
    request_body(content(
        (String = "application/jsonl"),
        (String = "application/x-ndjson"),
        (String = "application/json-lines"),
        (String = "application/x-jsonlines"),
        (String = "text/event-stream"),
    )),
    responses(
        (status = 201, description = "It is a message", body = AnsweredDocument),
        (status = 400, description = "A chunk is wrong; those before it, if any, are a message: `seq`", body = crate::http::openapi::ProblemDocument),
        (status = 409, description = "The id stands for a message already, or is being streamed", body = crate::http::openapi::ProblemDocument),
        (status = 413, description = "Too large; what fits is a message: `seq`", body = crate::http::openapi::ProblemDocument),
        (status = 415, description = "Neither JSON lines nor events", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn stream(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    Behind(id): Behind,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let author: Author = query(&uri)?;
    let framing = body::expect_type(&headers, &TYPES)?;
    let limits = of(&shared)?.options().limits;
    let writer = open(&shared, name, id.clone(), &author).await?;
    let mut answer = Answer {
        writer,
        assembly: Assembly::new(Sizes::of(&limits)),
        chunks: 0,
    };
    let splitter = Splitter::new(framing, limits.message_bytes_max);
    let mut body = body.into_data_stream();
    let (status, problem) = answer.read(&mut body, splitter).await;
    let rest = match status {
        Status::Complete | Status::Aborted => Some(body),
        // The author may go on for long: it is answered at once, and may write for a while.
        Status::Interrupted | Status::Stopped => {
            tokio::spawn(drained(body));
            None
        }
    };
    let problem = match problem {
        // Nothing was said: there is no message to keep.
        Some(problem) if answer.chunks == 0 => {
            answer.writer.discard()?;
            return Err(problem);
        }
        problem => problem,
    };
    let finished = Finished {
        status,
        tokens: author.tokens,
        assembled: &answer.assembly.message().into(),
    };
    let pending = answer.writer.finish(finished)?;
    if let Some(rest) = rest {
        drained(rest).await;
    }
    let appended = answered(pending).await?;
    let seq = appended.last_seq;
    match problem {
        Some(problem) => Err(problem.with("seq", seq)),
        None => {
            let document = AnsweredDocument {
                seq,
                id: &id,
                status: status.as_str(),
                head_seq: appended.head_seq,
            };
            let tag = [(header::ETAG, etag(appended.head_seq))];
            Ok((StatusCode::CREATED, tag, json(&document)).into_response())
        }
    }
}

/// How long the rest of a body may take behind its last chunk, and how large it may be.
const REST_LIMIT: Duration = Duration::from_secs(5);
const REST_SIZE_MAX: usize = 1 << 20;

/// Reads the rest of a body, which counts for nothing: `data: [DONE]`, the end of a stream. A client
/// that still writes when its connection is closed never reads the answer.
async fn drained(mut body: BodyDataStream) {
    let reading = async {
        let mut size = 0;
        while let Some(Ok(piece)) = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await {
            size += piece.len();
            if size > REST_SIZE_MAX {
                return;
            }
        }
    };
    // Whatever has not come by then is not waited for.
    let _ = tokio::time::timeout(REST_LIMIT, reading).await;
}

/// Opens a draft. Whether its id is taken may stand on the disk.
async fn open(
    shared: &Shared,
    name: Name,
    id: String,
    author: &Author,
) -> Result<DraftWriter, Problem> {
    let (role, from) = (author.role.clone(), author.from.clone());
    let opening = {
        let shared = shared.clone();
        move || {
            let draft = NewDraft {
                id: &id,
                role: role.as_deref().unwrap_or("assistant"),
                from: from.as_deref().unwrap_or_default(),
                metadata: b"",
            };
            Ok(of(&shared)?.draft_open(&name, draft)?)
        }
    };
    answered(off_thread(opening).await?).await
}

/// Ask for a streamed answer to stop; what has come is kept.
#[utoipa::path(
    post, path = "/conversations/{id}/messages/{message}/stop", tag = "messages",
    operation_id = "stop",
    params(
        ("id" = String, Path, description = "The conversation"),
        ("message" = String, Path, description = "The id of the message that is being streamed"),
    ),
    responses(
        (status = 202, description = "Its author is told"),
        (status = 404, description = "No such message is being streamed", body = crate::http::openapi::ProblemDocument),
    )
)]
pub(super) async fn stop(
    State(shared): State<Shared>,
    Conversation(name): Conversation,
    Behind(id): Behind,
) -> Result<Response, Problem> {
    of(&shared)?.draft_stop(&name, &id)?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// An answer that is being streamed.
struct Answer {
    writer: DraftWriter,
    assembly: Assembly,
    /// Those that were taken.
    chunks: u64,
}

/// What ends the reading of a stream.
enum End {
    Ended(Ended),
    Wrong(Problem),
}

/// What comes next.
enum Next {
    Piece(Bytes),
    End,
    /// The connection is lost, or the client's token was revoked.
    Lost(Problem),
    /// Somebody wants it to stop.
    Stopped,
}

impl Answer {
    /// Reads to the end, whichever it is: the status of the message, and what went wrong.
    async fn read(
        &mut self,
        body: &mut BodyDataStream,
        mut splitter: Splitter,
    ) -> (Status, Option<Problem>) {
        let mut is_over = false;
        while !is_over {
            let read = match self.next(body).await {
                Next::Stopped => return (Status::Stopped, None),
                Next::Lost(problem) => return (Status::Interrupted, Some(problem)),
                Next::Piece(bytes) => splitter.feed(&bytes, &mut |chunk| self.take(chunk)),
                Next::End => {
                    is_over = true;
                    splitter.finish(&mut |chunk| self.take(chunk))
                }
            };
            match read {
                Ok(()) => {}
                Err(End::Ended(ended)) => return (ended.status(), None),
                Err(End::Wrong(problem)) => {
                    let problem = problem.with("chunk", self.chunks);
                    return (Status::Interrupted, Some(problem));
                }
            }
        }
        (Status::Interrupted, None)
    }

    async fn next(&mut self, body: &mut BodyDataStream) -> Next {
        poll_fn(|cx| {
            if self.writer.poll_stopped(cx).is_ready() {
                return Poll::Ready(Next::Stopped);
            }
            Pin::new(&mut *body).poll_next(cx).map(|next| match next {
                None => Next::End,
                Some(Ok(bytes)) => Next::Piece(bytes),
                Some(Err(error)) => Next::Lost(body::unreadable(error)),
            })
        })
        .await
    }

    /// Takes a chunk: an error ends the stream, as it should or not.
    fn take(&mut self, chunk: &[u8]) -> Result<(), End> {
        let Ok(text) = std::str::from_utf8(chunk) else {
            return Err(End::Wrong(Problem::invalid("a chunk is not UTF-8")));
        };
        let ended = self.assembly.push(text)?;
        let pushed = match ended {
            None => self.writer.push(chunk),
            Some(_) => self.writer.push_last(chunk),
        };
        pushed.map_err(|refusal| End::Wrong(refusal.into()))?;
        self.chunks += 1;
        match ended {
            Some(ended) => Err(End::Ended(ended)),
            None => Ok(()),
        }
    }
}

impl From<ChunkError> for End {
    fn from(error: ChunkError) -> Self {
        let code = match error {
            ChunkError::TooLarge { .. } | ChunkError::TooManyParts => ErrorCode::TooLarge,
            _ => ErrorCode::InvalidArgument,
        };
        Self::Wrong(Problem::of(code, error.to_string()))
    }
}

impl From<TooLong> for End {
    fn from(error: TooLong) -> Self {
        Self::Wrong(Problem::of(ErrorCode::TooLarge, error.to_string()))
    }
}

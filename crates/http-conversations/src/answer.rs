//! Streamed answers: a request body of chunks becomes one message.
//!
//! Each chunk is validated, shown to watchers, and assembled with the others. When the stream ends,
//! the chunks received so far become the message: `finish` completes it, `abort` aborts it, a
//! client may stop it, and any other end interrupts it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use conversation_service::{DraftResult, DraftWriter, NewDraft, Status};
use futures_util::Stream;
use http_api::Problem;
use http_api::body;
use http_api::{Shared, off_thread, query};
use message_json::chunks::{Assembly, AuthorEnding, ChunkError, Framing, Sizes, Splitter, TooLong};
use model::{ErrorCode, Name};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::append::{answered, etag, json};
use super::place::{Behind, Conversation, of};

/// The author of the answer, in the query.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Author {
    /// Role of the author in the conversation; default `assistant`.
    role: Option<String>,
    /// Name of the author.
    from: Option<String>,
    /// Token count of the message, if it is known in advance.
    tokens: Option<u32>,
}

/// The message that a stream became.
#[derive(Serialize, ToSchema)]
#[schema(as = Answered)]
pub(crate) struct AnsweredDocument<'a> {
    /// Sequence number of the message.
    #[schema(example = 43)]
    seq: u64,
    #[schema(example = "a-9")]
    id: &'a str,
    /// `complete`, `aborted`, `stopped` or `interrupted`.
    #[schema(example = "complete")]
    status: &'a str,
    /// Sequence number of the conversation's newest message.
    head_seq: u64,
}

/// The content types of the body, each with its framing of chunks.
pub(super) const TYPES: [(&str, Framing); 5] = [
    ("application/jsonl", Framing::Lines),
    ("application/x-ndjson", Framing::Lines),
    ("application/json-lines", Framing::Lines),
    ("application/x-jsonlines", Framing::Lines),
    ("text/event-stream", Framing::Events),
];

/// Stream an answer.
///
/// The body is UI message chunks of the AI SDK, as JSON lines or as server-sent events. Watchers of
/// the conversation receive each chunk at once. The answer becomes one message with `finish` or
/// `abort`, at the end of the body or of the connection, or when a client stops it.
#[utoipa::path(
    post, path = "/conversations/{id}/messages/{message}/stream", tag = "messages",
    operation_id = "stream",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("message" = String, Path, description = "Id of the message to create"),
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
        (status = 201, description = "The message was created", body = AnsweredDocument),
        (status = 400, description = "A chunk is invalid; the chunks before it became the message `seq`", body = http_api::ProblemDocument),
        (status = 409, description = "The id is used by a message or by another stream", body = http_api::ProblemDocument),
        (status = 413, description = "The answer is too large; the chunks that fit became the message `seq`", body = http_api::ProblemDocument),
        (status = 415, description = "The body is neither JSON lines nor server-sent events", body = http_api::ProblemDocument),
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
        // The author may continue for long, so it is answered at once while the body is read for a
        // short time.
        Status::Interrupted | Status::Stopped => {
            tokio::spawn(drained(body));
            None
        }
    };
    let problem = match problem {
        // No chunk was accepted: there is no message to store.
        Some(problem) if answer.chunks == 0 => {
            answer.writer.discard()?;
            return Err(problem);
        }
        problem => problem,
    };
    let finished = DraftResult {
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

/// Longest time to read the rest of a body after its last chunk. [`REST_SIZE_MAX`] bounds its size.
const REST_LIMIT: Duration = Duration::from_secs(5);
const REST_SIZE_MAX: usize = 1 << 20;

/// Reads and ignores the rest of a body, such as `data: [DONE]`. A client that still writes when
/// its connection is closed would never read the answer.
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
    // After the limit, the rest is left unread.
    let _ = tokio::time::timeout(REST_LIMIT, reading).await;
}

/// Opens a draft. Looking up its id may wait for the disk.
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

/// Stop a streamed answer. The chunks received so far become the message.
#[utoipa::path(
    post, path = "/conversations/{id}/messages/{message}/stop", tag = "messages",
    operation_id = "stop",
    params(
        ("id" = String, Path, description = "Id of the conversation"),
        ("message" = String, Path, description = "Id of the message that is being streamed"),
    ),
    responses(
        (status = 202, description = "The author was asked to stop"),
        (status = 404, description = "No such message is being streamed", body = http_api::ProblemDocument),
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
    /// Number of accepted chunks.
    chunks: u64,
}

/// The end of a stream: a regular end, or an error.
enum End {
    Ended(AuthorEnding),
    Wrong(Problem),
}

/// The next input of a stream.
enum Next {
    Piece(Bytes),
    End,
    /// The connection is lost, or the client's token was revoked.
    Lost(Problem),
    /// A client asked to stop the answer.
    Stopped,
}

impl Answer {
    /// Reads to the end. Returns the status of the message, and the error if there was one.
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

    /// Accepts a chunk. `Err` ends the stream, both for its last chunk and for an error.
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

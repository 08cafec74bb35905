//! Streamed answers of agents: watchers see each chunk as it arrives.
//!
//! If the first chunk is invalid, no message is created, and the next attempt starts over.

use std::future::poll_fn;
use std::task::Poll;

use conversation_service::{DraftResult, DraftWriter, NewDraft, Status};
use message_json::chunks::{Assembly, Framing, Sizes, Splitter, TooLong};
use node::Node;
use webhooks::caller::Response;
use webhooks::{Call, Retry};

use super::{AnswerError, Outcome, PARTS_MAX, durable, durable_off_thread, id_taken};

pub(super) async fn hear(
    call: &Call,
    node: &Node,
    framing: Framing,
    mut response: Response,
) -> Result<Outcome, Outcome> {
    let limits = node
        .conversations()
        .ok_or(AnswerError::NoStorage)?
        .options()
        .limits;
    let mut answer = Answer {
        writer: open(call, node).await?,
        assembly: Assembly::new(Sizes::of(&limits)),
        has_begun: false,
    };
    let splitter = Splitter::new(framing, limits.message_bytes_max);
    let (status, failed) = match answer.read(call, &mut response, splitter).await {
        Ok(status) => (status, None),
        Err((_, outcome)) if !answer.has_begun => {
            answer.writer.discard()?;
            return Err(outcome);
        }
        Err((status, outcome)) => (status, Some(outcome)),
    };
    let finished = DraftResult {
        status,
        tokens: None,
        assembled: &answer.assembly.message().into(),
    };
    let pending = answer.writer.finish(finished)?;
    durable(pending).await?;
    match failed {
        None => Ok(Outcome::Answered),
        Some(failed) => Err(failed),
    }
}

/// Opens the draft of the answer. If that fails or an answer exists already, returns the outcome of
/// the call.
async fn open(call: &Call, node: &Node) -> Result<DraftWriter, Outcome> {
    for parts in 0..PARTS_MAX {
        let (node, conversation) = (node.clone(), call.conversation().clone());
        let (id, author) = (call.answer_id(parts), call.author().to_owned());
        let opening = move || {
            let draft = NewDraft {
                id: &id,
                role: "assistant",
                from: &author,
                metadata: b"",
            };
            let conversations = node.conversations().ok_or(AnswerError::NoStorage)?;
            Ok::<_, AnswerError>(conversations.draft_open(&conversation, draft)?)
        };
        match durable_off_thread(opening).await {
            Ok(writer) => return Ok(writer),
            Err(refusal) => {
                if let Some(outcome) = id_taken(call, refusal).await? {
                    return Err(outcome);
                }
            }
        }
    }
    Err(Outcome::wrong(0, "too many parts of earlier answers exist"))
}

/// The end of a stream: a final status, or an error.
enum End {
    Is(Status),
    Wrong(String),
}

type Broken = (Status, Outcome);

struct Answer {
    writer: DraftWriter,
    assembly: Assembly,
    /// True after the first valid chunk.
    has_begun: bool,
}

impl Answer {
    /// Reads to the end. Returns the status of the message, with the outcome on an error.
    async fn read(
        &mut self,
        call: &Call,
        response: &mut Response,
        mut splitter: Splitter,
    ) -> Result<Status, Broken> {
        loop {
            let next = poll_fn(|cx| {
                if call.poll_ended(cx).is_ready() {
                    return Poll::Ready(Err((Status::Stopped, Outcome::Ended)));
                }
                if self.writer.poll_stopped(cx).is_ready() {
                    return Poll::Ready(Ok(None));
                }
                response.body.as_mut().poll_piece(cx).map(|it| Ok(Some(it)))
            });
            let Some(piece) = next.await? else {
                // A watcher stopped the answer, which counts as an answer.
                return Ok(Status::Stopped);
            };
            let mut take = |chunk: &[u8]| self.take(chunk);
            let (taken, is_over) = match piece {
                Some(Ok(bytes)) => (splitter.feed(&bytes, &mut take), false),
                Some(Err(error)) => return Err((Status::Interrupted, error.into())),
                None => (splitter.finish(&mut take), true),
            };
            let outcome = match taken {
                Err(End::Is(status)) => return Ok(status),
                Err(End::Wrong(reason)) => Outcome::wrong(response.status, reason),
                Ok(()) if is_over => {
                    let reason = "the answer's stream ended without `finish`";
                    Outcome::failed(response.status, Retry::Later, reason)
                }
                Ok(()) => continue,
            };
            return Err((Status::Interrupted, outcome));
        }
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), End> {
        let text = std::str::from_utf8(chunk);
        let text = text.map_err(|_| End::Wrong("a chunk is not UTF-8".to_owned()))?;
        let ended = self.assembly.push(text);
        let ended = ended.map_err(|error| End::Wrong(error.to_string()))?;
        let pushed = match ended {
            None => self.writer.push(chunk),
            Some(_) => self.writer.push_last(chunk),
        };
        pushed.map_err(|refusal| End::Wrong(refusal.to_string()))?;
        self.has_begun = true;
        match ended {
            Some(ended) => Err(End::Is(ended.status())),
            None => Ok(()),
        }
    }
}

impl From<TooLong> for End {
    fn from(error: TooLong) -> Self {
        Self::Wrong(error.to_string())
    }
}

//! Answers: finished ones, and those that still wait.

use std::pin::Pin;
use std::task::{Context, Poll};

use kafka::{EncodeError, ErrorCode, RequestHeader, ResponseBody};
use net::Output;
use topic_service::StoredBytes;

use super::deadline::Deadline;
use super::file_part::FilePart;

/// Size of bytes in memory up to which they are copied into the outbox: that costs less than a buffer
/// of their own.
const COPIED_SIZE_MAX: usize = 4 << 10;

/// The version and correlation id of a request, with which its answer is encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) version: i16,
    pub(super) correlation_id: i32,
}

impl Tag {
    pub(super) fn of(header: &RequestHeader<'_>) -> Self {
        Self {
            version: header.version,
            correlation_id: header.correlation_id,
        }
    }

    /// Returns a reply, to be encoded when its turn comes.
    pub(super) fn reply<R: ResponseBody + Send + 'static>(self, response: R) -> Reply {
        Reply(Form::Write(Box::new(move |out| {
            self.encode(&response, out)
        })))
    }

    /// Appends the frame of a response.
    pub(super) fn encode<R: ResponseBody>(self, response: &R, out: &mut Output) -> EncodedCodes {
        let (version, correlation_id) = (self.version, self.correlation_id);
        kafka::encode_response_with_errors(out.buffer(), version, correlation_id, response)
    }

    /// Returns a reply with these records in place of those that are left out of the response, in
    /// order. They are not copied unless they are short.
    pub(super) fn reply_around<R: ResponseBody + Send + 'static>(
        self,
        response: R,
        records: Vec<StoredBytes>,
    ) -> Reply {
        Reply(Form::Write(Box::new(move |out| {
            let (version, correlation_id) = (self.version, self.correlation_id);
            let mut frame = Vec::new();
            let encoded =
                kafka::encode_response_around(&mut frame, version, correlation_id, &response)?;
            let copied = records.iter().filter(|it| is_copied(it));
            let copied: usize = copied.map(StoredBytes::size).sum();
            out.buffer().reserve(frame.len() + copied);
            let (mut records, mut from) = (records.into_iter(), 0);
            for gap in encoded.gaps {
                out.buffer().extend_from_slice(&frame[from..gap.at]);
                from = gap.at;
                let mut left = gap.size;
                while left > 0
                    && let Some(bytes) = records.next()
                {
                    left = left.saturating_sub(bytes.size());
                    push(out, bytes);
                }
            }
            out.buffer().extend_from_slice(&frame[from..]);
            Ok(encoded.errors)
        })))
    }

    /// Returns a finished answer.
    pub(super) fn now<R: ResponseBody + Send + 'static>(self, response: R) -> Answer {
        Answer::Now(self.reply(response))
    }

    /// Returns an answer that `making` finishes later.
    pub(super) fn later<R: ResponseBody + Send + 'static>(
        self,
        making: impl Future<Output = R> + Send + 'static,
    ) -> Answer {
        Answer::Later(Box::pin(async move { self.reply(making.await) }))
    }
}

fn is_copied(bytes: &StoredBytes) -> bool {
    matches!(bytes, StoredBytes::Memory(bytes) if bytes.len() <= COPIED_SIZE_MAX)
}

fn push(out: &mut Output, bytes: StoredBytes) {
    let is_copied = is_copied(&bytes);
    match bytes {
        StoredBytes::Memory(bytes) if is_copied => out.buffer().extend_from_slice(&bytes),
        StoredBytes::Memory(bytes) => out.push_shared(bytes),
        StoredBytes::File(range) => out.push_file(Box::new(FilePart(range))),
    }
}

type Write = dyn FnOnce(&mut Output) -> EncodedCodes + Send;

/// The error codes in an encoded answer.
pub(super) type EncodedCodes = Result<Vec<ErrorCode>, EncodeError>;

/// An answer that waits until a deadline. The connection has one timer for all of them
/// ([`DeadlineTimer`](super::deadline::DeadlineTimer)), and the answer is encoded from the memory in
/// which it waited.
pub(super) trait WaitingAnswer: Send {
    /// Returns the deadline.
    fn deadline(&self) -> Deadline;

    /// Ready once the answer is finished, which it is in any case if the deadline `is_over`; until then
    /// `cx` wakes the task when it may be.
    fn poll(&mut self, cx: &mut Context<'_>, is_over: bool) -> Poll<()>;

    /// Appends the frame of the finished answer.
    fn write(&self, out: &mut Output) -> EncodedCodes;
}

/// A finished answer, encoded directly into the outbox.
pub(super) struct Reply(Form);

enum Form {
    Write(Box<Write>),
    Waited(Box<dyn WaitingAnswer>),
}

impl Reply {
    /// Returns the reply to ApiVersions in an unsupported version.
    pub(super) fn of_future_versions(correlation_id: i32) -> Self {
        Self(Form::Write(Box::new(move |out| {
            let refused = kafka::encode_api_versions_refusal(out.buffer(), correlation_id);
            refused.map(|()| vec![ErrorCode::UnsupportedVersion])
        })))
    }

    /// Appends a whole frame, or nothing.
    pub(super) fn write(self, out: &mut Output) -> EncodedCodes {
        match self.0 {
            Form::Write(write) => write(out),
            Form::Waited(answer) => answer.write(out),
        }
    }
}

/// The answer to a request.
pub(super) enum Answer {
    /// The answer is finished.
    Now(Reply),
    /// The answer is finished later.
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
    /// The answer is finished at its deadline or earlier.
    Waiting(Box<dyn WaitingAnswer>),
    /// There is none, because the client asked for none (`acks=0`).
    Never,
}

impl Answer {
    /// Returns the answer, once it is finished. `is_over` says whether a deadline is over; until then it
    /// lets the task be woken at that time.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        is_over: impl FnOnce(Deadline) -> bool,
    ) -> Poll<Option<Reply>> {
        match std::mem::replace(self, Self::Never) {
            Self::Now(reply) => Poll::Ready(Some(reply)),
            Self::Never => Poll::Ready(None),
            Self::Later(mut making) => match making.as_mut().poll(cx) {
                Poll::Ready(reply) => Poll::Ready(Some(reply)),
                Poll::Pending => {
                    *self = Self::Later(making);
                    Poll::Pending
                }
            },
            Self::Waiting(mut answer) => {
                let is_finished = answer.poll(cx, false).is_ready()
                    || is_over(answer.deadline()) && answer.poll(cx, true).is_ready();
                if is_finished {
                    return Poll::Ready(Some(Reply(Form::Waited(answer))));
                }
                *self = Self::Waiting(answer);
                Poll::Pending
            }
        }
    }
}

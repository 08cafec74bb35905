//! Answers: finished ones, and those that still wait.

use std::pin::Pin;
use std::task::{Context, Poll};

use kafka::{EncodeError, ErrorCode, RequestHeader, ResponseBody};

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
        self.reply_of_size(response, 0)
    }

    /// Returns a reply of at least this size, for which memory is reserved once.
    pub(super) fn reply_of_size<R: ResponseBody + Send + 'static>(
        self,
        response: R,
        size: usize,
    ) -> Reply {
        Reply(Box::new(move |out| {
            out.reserve(size);
            kafka::encode_response_with_errors(out, self.version, self.correlation_id, &response)
        }))
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

type Write = dyn FnOnce(&mut Vec<u8>) -> EncodedCodes + Send;

/// The error codes in an encoded answer.
pub(super) type EncodedCodes = Result<Vec<ErrorCode>, EncodeError>;

/// A finished answer, encoded directly into the outbox.
pub(super) struct Reply(Box<Write>);

impl Reply {
    /// Returns the reply to ApiVersions in an unsupported version.
    pub(super) fn of_future_versions(correlation_id: i32) -> Self {
        Self(Box::new(move |out| {
            let refused = kafka::encode_api_versions_refusal(out, correlation_id);
            refused.map(|()| vec![ErrorCode::UnsupportedVersion])
        }))
    }

    /// Appends a whole frame, or nothing.
    pub(super) fn write(self, out: &mut Vec<u8>) -> EncodedCodes {
        (self.0)(out)
    }
}

/// The answer to a request.
pub(super) enum Answer {
    /// The answer is finished.
    Now(Reply),
    /// The answer is finished later.
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
    /// There is none, because the client asked for none (`acks=0`).
    Never,
}

impl Answer {
    /// Returns the answer, once it is finished.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Reply>> {
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
        }
    }
}

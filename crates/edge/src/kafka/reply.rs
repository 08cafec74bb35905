//! Answers on their way: what is known now, and what waits.

use std::pin::Pin;
use std::task::{Context, Poll};

use kafka::{EncodeError, ErrorCode, RequestHeader, ResponseBody};

/// What an answer repeats of its request, and how it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) version: i16,
    correlation_id: i32,
}

impl Tag {
    pub(super) fn of(header: &RequestHeader<'_>) -> Self {
        Self {
            version: header.version,
            correlation_id: header.correlation_id,
        }
    }

    /// The answer, to be written when it is its turn.
    pub(super) fn reply<R: ResponseBody + Send + 'static>(self, response: R) -> Reply {
        self.reply_of_size(response, 0)
    }

    /// The same, of at least so many bytes, for which room is made once.
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

    /// The answer, at once.
    pub(super) fn now<R: ResponseBody + Send + 'static>(self, response: R) -> Answer {
        Answer::Now(self.reply(response))
    }

    /// An answer that is made when it is there.
    pub(super) fn later<R: ResponseBody + Send + 'static>(
        self,
        making: impl Future<Output = R> + Send + 'static,
    ) -> Answer {
        Answer::Later(Box::pin(async move { self.reply(making.await) }))
    }
}

type Write = dyn FnOnce(&mut Vec<u8>) -> Written + Send;

/// The errors that an answer says.
pub(super) type Written = Result<Vec<ErrorCode>, EncodeError>;

/// An answer, written straight into what goes out.
pub(super) struct Reply(Box<Write>);

impl Reply {
    pub(super) fn new(write: impl FnOnce(&mut Vec<u8>) -> Written + Send + 'static) -> Self {
        Self(Box::new(write))
    }

    /// Appends a whole frame, or nothing.
    pub(super) fn write(self, out: &mut Vec<u8>) -> Written {
        (self.0)(out)
    }
}

/// What becomes of a request.
pub(super) enum Answer {
    /// It is answered.
    Now(Reply),
    /// It will be.
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
    /// It never will be, because the client said so.
    Never,
}

impl Answer {
    /// The answer, once it is there.
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

//! `Replies`: a call with any number of replies.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use wire::{Flags, Kind};

use crate::calls::options::{CallOptions, option_methods};
use crate::state::clock::Timeout;
use crate::state::exchange::WaitLimits;
use crate::state::item_call::ItemCall;
use crate::state::link::Outgoing;
use crate::{CallError, Caller};

/// Items of a streaming reply, from [`Caller::stream`].
///
/// Asking for the first item makes the call. The responder sends at most 64 items ahead and then
/// waits for the consumer. The stream ends with `None` after the last item, or with an error
/// followed by `None`. Dropping it cancels the call.
#[must_use = "nothing is streamed unless it is polled"]
pub struct Replies<B> {
    caller: Caller,
    method: Box<str>,
    body: B,
    options: CallOptions,
    items: ItemCall,
    is_over: bool,
}

impl Caller {
    /// Calls a method that replies with any number of items. Asking for the first item makes the
    /// call.
    pub fn stream<B: AsRef<[u8]>>(&self, method: &str, body: B) -> Replies<B> {
        Replies::new(self.clone(), method, body)
    }
}

impl<B: AsRef<[u8]>> Replies<B> {
    pub(crate) fn new(caller: Caller, method: &str, body: B) -> Self {
        let mut options = CallOptions::new(caller.core());
        options.timeout = Timeout::NONE;
        Self {
            items: ItemCall::new(caller.core().clone()),
            caller,
            method: method.into(),
            body,
            options,
            is_over: false,
        }
    }

    option_methods! {
        options:
        /// Sets how long the whole stream may take. Default: no limit. Waiting for room and for a
        /// connection is limited by the client's deadline in any case.
        deadline;
        /// Limits the deadline to that of the request being handled, and passes on its trace context.
        within;
        /// Sets what happens while the window is full or there is no connection. Default: wait.
        when_full;
        /// Sends metadata entries with the body.
        metadata;
    }

    /// Returns the next item; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, CallError>> {
        std::future::poll_fn(|cx| self.poll_item(cx)).await
    }

    fn poll_item(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        loop {
            if let Some(item) = self.items.next_item() {
                return Poll::Ready(Some(Ok(item)));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let outgoing = Outgoing {
                kind: Kind::REQUEST,
                flags: Flags::STREAM,
                target: self.caller.target(&self.method),
                metadata: self.options.metadata.block(),
                body: self.body.as_ref(),
            };
            let limits = WaitLimits {
                wait: self
                    .options
                    .timeout
                    .min(self.caller.core().options.deadline),
                ..self.options.limits()
            };
            if let Some(end) = ready!(self.items.poll(&outgoing, limits, cx)) {
                self.is_over = true;
                // Frees the slot of the call now, however long the stream object lives.
                self.items.restart();
                if let Err(error) = end {
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl<B> Unpin for Replies<B> {}

impl<B: AsRef<[u8]>> Stream for Replies<B> {
    type Item = Result<Bytes, CallError>;

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Bytes, CallError>>> {
        self.get_mut().poll_item(cx)
    }
}

impl<B> std::fmt::Debug for Replies<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replies({} {})", self.caller.name(), self.method)
    }
}

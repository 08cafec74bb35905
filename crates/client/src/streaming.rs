//! `Replies`: a call with any number of replies.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use wire::{Correlation, Credit, Flags, Kind};

use crate::call::CallOptions;
use crate::clock::Timeout;
use crate::core::Core;
use crate::exchange::{
    CallId, Exchange, ExchangeResult, Progress, WaitLimits, WhenFull, set_waker,
};
use crate::functions::Functions;
use crate::items::{CREDIT_BATCH, End, Items};
use crate::link::Outgoing;
use crate::pending::Holder;
use crate::{CallError, Caller, Context, Metadata};

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
    exchange: Exchange<Arc<Core>>,
    /// Items received and not yet yielded.
    taken: VecDeque<Bytes>,
    /// Items yielded for which no credit was returned yet.
    consumed: u32,
    is_over: bool,
}

impl<B: AsRef<[u8]>> Replies<B> {
    pub(crate) fn new(caller: Caller, method: &str, body: B) -> Self {
        let mut options = CallOptions::new(caller.core());
        options.timeout = Timeout::NONE;
        Self {
            exchange: Exchange::new(caller.core().clone()),
            caller,
            method: method.into(),
            body,
            options,
            taken: VecDeque::new(),
            consumed: 0,
            is_over: false,
        }
    }

    /// Sets how long the whole stream may take. Default: no limit. Waiting for room and for a
    /// connection is limited by the client's deadline in any case.
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.options.timeout = Timeout::new(deadline.into());
        self
    }

    /// Limits the deadline to that of the request being handled, and passes on its trace context.
    pub fn within(mut self, context: &Context) -> Self {
        self.options.inherit(context);
        self
    }

    /// Sets what happens while the window is full or there is no connection. Default: wait.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.options.when_full = when_full;
        self
    }

    /// Sends metadata entries with the body.
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.options.metadata = metadata;
        self
    }

    /// Returns the next item; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, CallError>> {
        std::future::poll_fn(|cx| self.poll_item(cx)).await
    }

    fn poll_item(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        loop {
            if let Some(item) = self.taken.pop_front() {
                self.consumed += 1;
                return Poll::Ready(Some(Ok(item)));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let call = match ready!(self.poll_begin(cx)) {
                Ok(call) => call,
                Err(error) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(error)));
                }
            };
            let core = self.caller.core();
            if let Some(end) = ready!(poll_items(
                core,
                call,
                &mut self.consumed,
                &mut self.taken,
                cx
            )) {
                self.is_over = true;
                // Frees the slot of the call now, however long the stream object lives.
                self.exchange = Exchange::new(self.caller.core().clone());
                if let Err(error) = end {
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    fn poll_begin(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<CallId, CallError>> {
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
        let progress = self
            .exchange
            .poll_begin(limits, cx, |link, timeout, waker| {
                let holder =
                    |_: &mut Functions| Holder::Stream(Box::new(Items::new(waker.clone())));
                link.issue(&outgoing, timeout, &mut 0, holder)
            });
        match ready!(progress) {
            Ok(Progress::Sent(call) | Progress::InFlight(call)) => Poll::Ready(Ok(call)),
            Err(ExchangeResult { outcome, .. }) => match outcome {
                Err(error) => Poll::Ready(Err(error)),
                Ok(_) => unreachable!("a stream that did not begin has no reply"),
            },
        }
    }
}

/// Takes the items that have arrived for a stream and returns credit for the items consumed before.
/// Returns the end of the stream when no items are left.
pub(crate) fn poll_items(
    core: &Core,
    call: CallId,
    consumed: &mut u32,
    taken: &mut VecDeque<Bytes>,
    cx: &mut TaskContext<'_>,
) -> Poll<Option<End>> {
    let CallId { link, correlation } = call;
    let mut state = core.state.lock();
    let Some(link) = state.link_mut(link) else {
        return Poll::Ready(Some(Ok(())));
    };
    let Some(Holder::Stream(items)) = link.pending.holder(correlation) else {
        return Poll::Ready(Some(Ok(())));
    };
    let returned = match *consumed >= CREDIT_BATCH && !items.is_ended() {
        true => std::mem::take(consumed),
        false => 0,
    };
    items.allow(returned);
    let outcome = if !items.queue.is_empty() {
        std::mem::swap(&mut items.queue, taken);
        Poll::Ready(None)
    } else if let Some(end) = items.take_end() {
        Poll::Ready(Some(end))
    } else {
        set_waker(&mut items.waker, cx);
        Poll::Pending
    };
    if returned > 0 {
        link.queue_frame(|out| encode_credit(returned, correlation, out));
    }
    outcome
}

fn encode_credit(items: u32, correlation: Correlation, out: &mut Vec<u8>) {
    let credit = Credit {
        messages: items,
        bytes: 0,
    };
    credit.encode(correlation, out);
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

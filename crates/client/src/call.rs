//! `Call`: one call and its retries as a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};
use wire::{Flags, Kind, TRACEPARENT};

use crate::clock::Timeout;
use crate::core::Core;
use crate::exchange::{Exchange, ExchangeResult, WaitLimits, WhenFull};
use crate::link::Outgoing;
use crate::routes::Target;
use crate::{CallError, Context, Metadata, RetryPolicy};

/// A call in progress; awaiting it returns the reply. From [`Caller::call`](crate::Caller::call).
///
/// The call is sent at the first poll. Dropping the future cancels the call, which drops its
/// handler.
#[must_use = "a call does nothing unless it is awaited"]
pub struct Call<'a, B> {
    core: &'a Arc<Core>,
    target: Target<'a>,
    body: B,
    options: CallOptions,
    exchange: Exchange<&'a Arc<Core>>,
    retries: Retries,
}

/// Options of one call.
#[derive(Clone)]
pub(crate) struct CallOptions {
    pub(crate) timeout: Timeout,
    pub(crate) when_full: WhenFull,
    pub(crate) metadata: Metadata,
    pub(crate) retry: Option<RetryPolicy>,
}

/// Retry state of one call.
#[derive(Default)]
struct Retries {
    made: u32,
    pause: Option<Pin<Box<Sleep>>>,
    /// Deadline of all attempts together; set after the first attempt.
    deadline: Option<Instant>,
}

impl<'a, B: AsRef<[u8]>> Call<'a, B> {
    pub(crate) fn new(core: &'a Arc<Core>, target: Target<'a>, body: B) -> Self {
        Self {
            core,
            target,
            body,
            options: CallOptions::new(core),
            exchange: Exchange::new(core),
            retries: Retries::default(),
        }
    }

    pub(crate) fn with_options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Makes this call the repetition of a call that failed with `error`. The caller of this
    /// function has kept the body.
    pub(crate) fn after(mut self, error: &CallError) -> Self {
        self.retries.plan(&self.options, error, None);
        self
    }

    /// Sets how long the call may take, including all retries; `None` for no limit. The time covers
    /// waiting for room, writing, the handler and the way back.
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.options.timeout = Timeout::new(deadline.into());
        self
    }

    /// Limits the deadline to that of the request being handled, and passes on its trace context.
    pub fn within(mut self, context: &Context) -> Self {
        self.options.inherit(context);
        self
    }

    /// Retries the call if it fails and a retry is safe.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.options.retry = Some(policy);
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

    /// Sends the W3C trace context `00-TRACE-SPAN-FLAGS` with the body.
    pub fn traceparent(mut self, traceparent: &str) -> Self {
        let metadata = std::mem::take(&mut self.options.metadata);
        self.options.metadata = metadata.with(TRACEPARENT, traceparent);
        self
    }
}

impl<B> Unpin for Call<'_, B> {}

impl<B: AsRef<[u8]>> Future for Call<'_, B> {
    type Output = Result<Bytes, CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let outgoing = Outgoing {
            kind: Kind::REQUEST,
            flags: Flags::NONE,
            target: this.target,
            metadata: this.options.metadata.block(),
            body: this.body.as_ref(),
        };
        loop {
            if let Some(pause) = &mut this.retries.pause {
                ready!(pause.as_mut().poll(cx));
                this.retries.pause = None;
                this.options.timeout = Timeout::until(this.retries.deadline, Instant::now());
                this.exchange = Exchange::new(this.core);
            }
            let limits = this.options.limits();
            let result = this.exchange.poll(&outgoing, limits, cx);
            let ExchangeResult { outcome, deadline } = ready!(result);
            match outcome {
                Ok(reply) => return Poll::Ready(Ok(reply)),
                Err(error) if this.retries.plan(&this.options, &error, deadline) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Retries {
    /// Starts the pause before the next attempt. Returns false when the call is not to be retried.
    fn plan(
        &mut self,
        options: &CallOptions,
        error: &CallError,
        deadline: Option<Instant>,
    ) -> bool {
        let Some(policy) = &options.retry else {
            return false;
        };
        self.made += 1;
        let Some(pause) = policy.pause(error, self.made) else {
            return false;
        };
        let now = Instant::now();
        if self.made == 1 {
            self.deadline = deadline.or(options.timeout.deadline(now));
        }
        if self
            .deadline
            .is_some_and(|deadline| deadline <= now + pause)
        {
            return false;
        }
        self.pause = Some(Box::pin(tokio::time::sleep(pause)));
        true
    }
}

impl CallOptions {
    pub(crate) fn new(core: &Core) -> Self {
        Self {
            timeout: core.options.deadline,
            when_full: WhenFull::Wait,
            metadata: Metadata::new(),
            retry: None,
        }
    }

    pub(crate) fn limits(&self) -> WaitLimits {
        WaitLimits {
            when_full: self.when_full,
            ..WaitLimits::new(self.timeout)
        }
    }

    /// Limits the deadline to that of the request being handled, and copies its trace context.
    pub(crate) fn inherit(&mut self, context: &Context) {
        if let Some(remaining) = context.deadline_remaining() {
            let remaining = Timeout::new(Some(remaining));
            self.timeout = self.timeout.min(remaining);
        }
        for key in [TRACEPARENT, wire::TRACESTATE] {
            if let Some(value) = context.metadata().get(key) {
                let metadata = std::mem::take(&mut self.metadata);
                self.metadata = metadata.with(key, value);
            }
        }
    }
}

impl<B> std::fmt::Debug for Call<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Call({} {})", self.target.name, self.target.method)
    }
}

//! `Call`: one call and its retries as a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use bytes::Bytes;
use tokio::time::{Instant, Sleep};
use wire::{Flags, Kind};

use crate::calls::options::{CallOptions, option_methods};
use crate::state::clock::Timeout;
use crate::state::core::Core;
use crate::state::exchange::{Exchange, ExchangeResult};
use crate::state::link::Outgoing;
use crate::state::routes::Target;
use crate::{CallError, Caller};

/// A call in progress; awaiting it returns the reply. From [`Caller::call`].
///
/// The call is sent at the first poll. Dropping the future cancels the call, which drops its
/// handler.
#[must_use = "a call does nothing unless it is awaited"]
pub struct Call<'a, B> {
    core: &'a Arc<Core>,
    target: Target<'a>,
    body: B,
    pub(super) options: CallOptions,
    exchange: Exchange<&'a Arc<Core>>,
    retries: Retries,
}

/// Retry state of one call.
#[derive(Default)]
struct Retries {
    made: u32,
    pause: Option<Pin<Box<Sleep>>>,
    /// Deadline of all attempts together; set after the first attempt.
    deadline: Option<Instant>,
}

impl Caller {
    /// Calls a method. Awaiting the returned [`Call`] sends it; its methods set deadline, retries
    /// and metadata.
    ///
    /// ```
    /// use telpher_client::{Caller, Server};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Server::new().handle("echo", |request: telpher_client::Request| async { Ok(request.body) });
    /// # let listening = server.listen("tcp://127.0.0.1:0").await?;
    /// let caller = Caller::connect(listening.address()).await?;
    /// let reply = caller.call("echo", "hello").deadline(Duration::from_secs(2)).await?;
    /// assert_eq!(reply, "hello");
    ///
    /// let error = caller.call("eco", "hello").await.unwrap_err();
    /// assert_eq!(error.code, model::ErrorCode::UnknownMethod);
    /// assert!(error.message.contains("did you mean `echo`?"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn call<'a, B: AsRef<[u8]>>(&'a self, method: &'a str, body: B) -> Call<'a, B> {
        Call::new(self.core(), self.target(method), body)
    }
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

    option_methods! {
        options:
        /// Sets how long the call may take, including all retries; `None` for no limit. The time covers
        /// waiting for room, writing, the handler and the way back.
        deadline;
        /// Limits the deadline to that of the request being handled, and passes on its trace context.
        within;
        /// Retries the call if it fails and a retry is safe.
        retry;
        /// Sets what happens while the window is full or there is no connection. Default: wait.
        when_full;
        /// Sends metadata entries with the body.
        metadata;
        /// Sends the W3C trace context `00-TRACE-SPAN-FLAGS` with the body.
        traceparent;
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

impl<B> std::fmt::Debug for Call<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Call({} {})", self.target.name, self.target.method)
    }
}

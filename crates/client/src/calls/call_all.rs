//! Many calls of one method through a sliding window, with replies in order.
//!
//! Only the oldest call has a waker. When it completes, the caller wakes once, takes every reply
//! that is ready in order, and makes as many new calls, all under one lock and with one write.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::Instant;
use wire::{Flags, Kind};

use crate::calls::options::{CallOptions, option_methods};
use crate::state::clock::Timeout;
use crate::state::completions::Completions;
use crate::state::core::{Admission, Core, Life, State};
use crate::state::exchange::{
    CallId, cancel_calls, enter_queue, leave_queue, set_waker, wait_timeout_error,
};
use crate::state::holder::Holder;
use crate::state::link::Outgoing;
use crate::state::queue::Ticket;
use crate::state::routes::{Hint, Target};
use crate::{Call, CallError, Caller};

/// Bodies taken from the iterator at a time.
const STAGE_LENGTH: usize = 256;

/// Replies to many calls, in order. From [`Caller::call_all`].
///
/// Dropping it cancels the calls in flight.
#[must_use = "no call is made unless the replies are asked for"]
pub struct CallAll<'a, I: Iterator> {
    core: &'a Arc<Core>,
    target: Target<'a>,
    hint: Hint,
    bodies: I,
    is_exhausted: bool,
    concurrency: usize,
    options: CallOptions,
    /// Bodies of calls not made yet.
    staged: VecDeque<I::Item>,
    /// Calls in flight, oldest first. An error stands for a call that could not be made.
    window: VecDeque<Result<CallId, CallError>>,
    /// Outcomes ready to be yielded, in order.
    settled: VecDeque<Result<Bytes, CallError>>,
    /// Bodies of the calls in `window` and `settled`; filled only with a retry policy.
    retry_bodies: VecDeque<I::Item>,
    /// Ticket in the queue of callers that wait for room, and its deadline.
    waiting: Option<(Ticket, Option<Instant>)>,
    retry_call: Option<Call<'a, I::Item>>,
}

/// Admission of the next call.
enum Verdict {
    Go,
    Later,
    Never(CallError),
}

impl Caller {
    /// Calls a method with each of `bodies`, at most `concurrency` calls at a time, and yields the
    /// replies in the order of the bodies. The window slides: the next call is made as soon as the
    /// oldest reply was taken, not when a whole batch is complete.
    ///
    /// ```
    /// # use telpher_client::{Caller, Server};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Server::new().handle("echo", |request: telpher_client::Request| async { Ok(request.body) });
    /// # let listening = server.listen("tcp://127.0.0.1:0").await?;
    /// # let caller = Caller::connect(listening.address()).await?;
    /// let mut replies = caller.call_all("echo", (0..100).map(|n| n.to_string()), 10);
    /// let mut next = 0;
    /// while let Some(reply) = replies.next().await {
    ///     assert_eq!(reply?, next.to_string());
    ///     next += 1;
    /// }
    /// assert_eq!(next, 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_all<'a, I>(
        &'a self,
        method: &'a str,
        bodies: I,
        concurrency: usize,
    ) -> CallAll<'a, I::IntoIter>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        CallAll::new(self, method, bodies.into_iter(), concurrency)
    }

    /// Calls a method with all of `bodies` at once, as far as the window allows, with one lock, one
    /// run of frames and one write. Returns the outcomes in the order of the bodies.
    pub async fn call_batch<I>(&self, method: &str, bodies: I) -> Vec<Result<Bytes, CallError>>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        let mut replies = self.call_all(method, bodies, usize::MAX);
        let mut outcomes = Vec::new();
        while let Some(outcome) = replies.next().await {
            outcomes.push(outcome);
        }
        outcomes
    }
}

impl<'a, I> CallAll<'a, I>
where
    I: Iterator,
    I::Item: AsRef<[u8]>,
{
    pub(crate) fn new(caller: &'a Caller, method: &'a str, bodies: I, concurrency: usize) -> Self {
        Self {
            core: caller.core(),
            target: caller.target(method),
            hint: 0,
            bodies,
            is_exhausted: false,
            concurrency: concurrency.max(1),
            options: CallOptions::new(caller.core()),
            staged: VecDeque::new(),
            window: VecDeque::new(),
            settled: VecDeque::new(),
            retry_bodies: VecDeque::new(),
            waiting: None,
            retry_call: None,
        }
    }

    option_methods! {
        options:
        /// Sets how long each call may take; `None` for no limit.
        deadline;
        /// Limits the deadline to that of the request being handled, and passes on its trace context.
        within;
        /// Retries calls that fail if a retry is safe. A failed call is retried when its outcome is
        /// next to be yielded.
        retry;
        /// Sends metadata entries with each body.
        metadata;
    }

    /// Returns the next reply; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Bytes, CallError>> {
        std::future::poll_fn(|cx| self.poll_reply(cx)).await
    }

    fn poll_reply(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        loop {
            if let Some(call) = &mut self.retry_call {
                let outcome = ready!(Pin::new(call).poll(cx));
                self.retry_call = None;
                return Poll::Ready(Some(outcome));
            }
            if let Some(outcome) = self.settled.pop_front() {
                match self.repeat(outcome) {
                    Some(outcome) => return Poll::Ready(Some(outcome)),
                    None => continue,
                }
            }
            self.advance(cx);
            if self.settled.is_empty() {
                let is_over = self.is_exhausted && self.staged.is_empty();
                return match is_over && self.window.is_empty() {
                    true => Poll::Ready(None),
                    false => Poll::Pending,
                };
            }
        }
    }

    /// Returns the outcome, or starts a retry of the call and returns `None`.
    fn repeat(&mut self, outcome: Result<Bytes, CallError>) -> Option<Result<Bytes, CallError>> {
        let Some(policy) = self.options.retry else {
            return Some(outcome);
        };
        let body = self.retry_bodies.pop_front();
        match (outcome, body) {
            (Err(error), Some(body)) if policy.pause(&error, 1).is_some() => {
                let call = Call::new(self.core, self.target, body);
                self.retry_call = Some(call.with_options(self.options.clone()).after(&error));
                None
            }
            (outcome, _) => Some(outcome),
        }
    }

    /// Collects the replies that are ready, makes new calls, and registers the waker with the
    /// oldest.
    fn advance(&mut self, cx: &mut TaskContext<'_>) {
        let mut completions = Completions::default();
        let mut guard = self.core.state.lock();
        self.harvest(&mut guard, &mut completions);
        loop {
            // The iterator is user code and must not run under the lock.
            drop(guard);
            self.stage();
            guard = self.core.state.lock();
            if !self.fill(&mut guard, cx) {
                break;
            }
        }
        self.harvest(&mut guard, &mut completions);
        if let Some(Ok(oldest)) = self.window.front()
            && let Some(link) = guard.link_mut(oldest.link)
            && let Some(Holder::Future(waker)) = link.pending.holder(oldest.correlation)
        {
            set_waker(waker, cx);
        }
        guard.settle(&mut completions);
        guard.remove_finished();
        drop(guard);
        completions.finish(&[]);
    }

    /// Moves the outcomes that are complete, in order, from `window` to `settled`.
    fn harvest(&mut self, state: &mut State, completions: &mut Completions) {
        while let Some(oldest) = self.window.front() {
            let taken = match oldest {
                Ok(call) => state
                    .link_mut(call.link)
                    .and_then(|link| link.take(call.correlation, completions))
                    .map(|(outcome, _)| outcome),
                Err(error) => Some(Err(error.clone())),
            };
            let Some(outcome) = taken else { break };
            self.window.pop_front();
            self.settled.push_back(outcome);
        }
    }

    /// Takes bodies from the iterator, as many as may be in flight.
    fn stage(&mut self) {
        let in_flight = self.window.len() + self.settled.len();
        let wanted = self.concurrency.saturating_sub(in_flight).min(STAGE_LENGTH);
        while self.staged.len() < wanted && !self.is_exhausted {
            match self.bodies.next() {
                Some(body) => self.staged.push_back(body),
                None => self.is_exhausted = true,
            }
        }
    }

    /// Makes calls with the staged bodies while there is room. Returns true if there may be room
    /// for more.
    fn fill(&mut self, state: &mut State, cx: &mut TaskContext<'_>) -> bool {
        let is_all = self.staged.len() < STAGE_LENGTH;
        while let Some(body) = self.staged.front() {
            let outgoing = Outgoing {
                kind: Kind::REQUEST,
                flags: Flags::NONE,
                target: self.target,
                metadata: self.options.metadata.block(),
                body: body.as_ref(),
            };
            let is_idle = self.window.is_empty() && self.settled.is_empty();
            let timeout = self.options.timeout;
            let verdict = admit_next(state, &mut self.waiting, is_idle, timeout, cx);
            let outcome = match (verdict, &mut state.link) {
                (Verdict::Later, _) => return false,
                (Verdict::Never(error), _) => Err(error),
                (Verdict::Go, None) => Err(state.unavailable()),
                (Verdict::Go, Some(link)) => link
                    .issue(&outgoing, timeout, &mut self.hint, |_| Holder::Future(None))
                    .map(|correlation| CallId {
                        link: link.id,
                        correlation,
                    }),
            };
            let body = self.staged.pop_front();
            if self.options.retry.is_some() {
                self.retry_bodies.extend(body);
            }
            self.window.push_back(outcome);
        }
        !is_all
    }
}

/// Decides whether the next call can be made. A caller with no call in flight enters the waiting
/// queue.
fn admit_next(
    state: &mut State,
    waiting: &mut Option<(Ticket, Option<Instant>)>,
    is_idle: bool,
    timeout: Timeout,
    cx: &TaskContext<'_>,
) -> Verdict {
    let Some((ticket, until)) = *waiting else {
        return match state.admits_call() {
            Admission::Open => Verdict::Go,
            Admission::Closed => Verdict::Never(state.unavailable()),
            Admission::Full | Admission::Down => {
                if is_idle {
                    let until = timeout.deadline(Instant::now());
                    *waiting = Some((enter_queue(state, cx, until), until));
                }
                Verdict::Later
            }
        };
    };
    let has_room = state.link.as_ref().is_some_and(|link| link.room() > 0);
    let verdict = if until.is_some_and(|until| until <= Instant::now()) {
        Verdict::Never(wait_timeout_error(state))
    } else if state.life != Life::Open {
        Verdict::Never(state.unavailable())
    } else if has_room && state.calls.may_try(ticket) {
        Verdict::Go
    } else {
        state.calls.stay(ticket, cx.waker());
        return Verdict::Later;
    };
    state.calls.leave(ticket);
    *waiting = None;
    verdict
}

impl<I: Iterator> Unpin for CallAll<'_, I> {}

impl<I> Stream for CallAll<'_, I>
where
    I: Iterator,
    I::Item: AsRef<[u8]>,
{
    type Item = Result<Bytes, CallError>;

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Bytes, CallError>>> {
        self.get_mut().poll_reply(cx)
    }
}

impl<I: Iterator> Drop for CallAll<'_, I> {
    fn drop(&mut self) {
        if let Some((ticket, _)) = self.waiting {
            leave_queue(self.core, ticket);
        }
        let calls = self.window.drain(..).filter_map(Result::ok);
        let calls: Vec<CallId> = calls.collect();
        if !calls.is_empty() {
            cancel_calls(self.core, calls);
        }
    }
}

impl<I: Iterator> std::fmt::Debug for CallAll<'_, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Target { name, method, .. } = self.target;
        write!(
            f,
            "CallAll({name} {method}, {} at a time)",
            self.concurrency
        )
    }
}

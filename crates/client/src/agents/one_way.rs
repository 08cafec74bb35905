//! `OneWay`: messages without a reply, and messages of which the node reports the delivery.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use model::ErrorCode;
use tokio::time::Instant;
use wire::{Flags, Kind, Receipt};

use crate::calls::options::{CallOptions, option_methods};
use crate::state::clock::Timeout;
use crate::state::completions::Completions;
use crate::state::core::{Core, Life, State};
use crate::state::exchange::{CallId, Exchange, WhenFull, wait_timeout_error};
use crate::state::link::Outgoing;
use crate::state::queue::{Queue, Ticket};
use crate::state::routes::Target;
use crate::{CallError, Caller};

/// A message to be sent. Awaiting it waits for room and for nothing else.
///
/// The peer grants room. When that is used up, or every subscriber of the name is full, sending
/// waits until the deadline. The message is sent at the first poll.
#[must_use = "a message is not sent unless it is awaited"]
pub struct OneWay<'a, B> {
    core: &'a Arc<Core>,
    target: Target<'a>,
    body: B,
    options: CallOptions,
    position: Option<QueuePosition>,
}

/// A ticket in one of the two waiting queues, and its deadline.
#[derive(Clone, Copy)]
struct QueuePosition {
    reason: WaitReason,
    ticket: Ticket,
    until: Option<Instant>,
}

/// Waiting queue of senders, by the reason for waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitReason {
    /// The credit of the peer's window is used up.
    Credit,
    /// Every subscriber of the name is full.
    Flow,
}

/// Result of an attempt to send.
enum Attempt {
    Sent,
    Issued(CallId),
    Wait(WaitReason),
    Failed(CallError),
}

/// Kind of message, by the answer that the sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A message; no answer.
    Send,
    /// A message; waits for the delivery report.
    SendReported,
    /// A write; waits until it is on disk.
    Write,
    /// A write; waits until the node has queued it.
    WriteToMemory,
}

impl Caller {
    /// Sends a message to a method. There is no reply; awaiting it waits only until the peer has
    /// room.
    pub fn one_way<'a, B: AsRef<[u8]>>(&'a self, method: &'a str, body: B) -> OneWay<'a, B> {
        OneWay::new(self.core(), self.target(method), body)
    }
}

impl<'a, B: AsRef<[u8]>> OneWay<'a, B> {
    pub(crate) fn new(core: &'a Arc<Core>, target: Target<'a>, body: B) -> Self {
        Self {
            core,
            target,
            body,
            options: CallOptions::new(core),
            position: None,
        }
    }

    /// Sets the method. A message to an agent has no method by default.
    pub fn method(mut self, method: &'a str) -> Self {
        self.target.method = method;
        self
    }

    option_methods! {
        options:
        /// Sets how long to wait for room and for the delivery report; `None` for no limit.
        deadline;
        /// Sets what happens while there is no room. Default: wait.
        when_full;
        /// Sends metadata entries with the body.
        metadata;
    }

    /// Sends without waiting. Fails with `busy` when there is no room, and with `unavailable` when
    /// there is no connection.
    pub fn now(mut self) -> Result<(), CallError> {
        self.options.when_full = WhenFull::Busy;
        let waker = std::task::Waker::noop();
        match self.poll_send(Verb::Send, &mut TaskContext::from_waker(waker)) {
            Poll::Ready(Ok(_)) => Ok(()),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(no_room(WaitReason::Credit)),
        }
    }

    /// Sends and waits for the node's report: for how many subscribers the message was queued, and
    /// how many were full.
    pub async fn reported(self) -> Result<Receipt, CallError> {
        let payload = self.answered(Verb::SendReported).await?;
        Receipt::decode(&payload).map_err(|error| CallError::malformed(&error))
    }

    /// Sends and waits for the node's answer.
    pub(crate) async fn answered(mut self, verb: Verb) -> Result<Bytes, CallError> {
        let core = self.core;
        let sent = std::future::poll_fn(|cx| self.poll_send(verb, cx)).await?;
        let Some(call) = sent else {
            unreachable!("a message with an answer is issued");
        };
        let mut exchange = Exchange::in_flight(core, call);
        let result = std::future::poll_fn(|cx| exchange.poll_outcome(call, cx)).await;
        result.outcome
    }

    fn poll_send(
        &mut self,
        verb: Verb,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<Option<CallId>, CallError>> {
        let (kind, flags) = match verb {
            Verb::Send => (Kind::SEND, Flags::NONE),
            Verb::SendReported => (Kind::SEND, Flags::REPORT),
            Verb::Write => (Kind::WRITE, Flags::KEYED),
            Verb::WriteToMemory => (Kind::WRITE, Flags::MEMORY),
        };
        let outgoing = Outgoing {
            kind,
            flags,
            target: self.target,
            metadata: self.options.metadata.block(),
            body: self.body.as_ref(),
        };
        let mut completions = Completions::default();
        let mut guard = self.core.state.lock();
        let state = &mut *guard;
        let attempt = match self.position {
            None => attempt(state, &outgoing, self.options.timeout, None),
            Some(waiting) => attempt_again(state, &outgoing, waiting),
        };
        let outcome = match attempt {
            Attempt::Wait(reason) if self.options.when_full == WhenFull::Wait => {
                self.position = Some(wait(state, reason, self.position, self.options.timeout, cx));
                return Poll::Pending;
            }
            Attempt::Sent => Ok(None),
            Attempt::Issued(call) => Ok(Some(call)),
            Attempt::Failed(error) => Err(error),
            Attempt::Wait(_) if state.link.is_none() => Err(state.unavailable()),
            Attempt::Wait(reason) => Err(no_room(reason)),
        };
        if let Some(waiting) = self.position.take() {
            waiting.reason.queue(state).leave(waiting.ticket);
            state.settle(&mut completions);
        }
        drop(guard);
        completions.finish(&[]);
        Poll::Ready(outcome)
    }
}

impl<B> Unpin for OneWay<'_, B> {}

impl<B: AsRef<[u8]>> Future for OneWay<'_, B> {
    type Output = Result<(), CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let sent = self.get_mut().poll_send(Verb::Send, cx);
        sent.map(|sent| sent.map(|_| ()))
    }
}

impl<B> Drop for OneWay<'_, B> {
    fn drop(&mut self) {
        if let Some(waiting) = self.position.take() {
            let mut completions = Completions::default();
            {
                let mut state = self.core.state.lock();
                waiting.reason.queue(&mut state).leave(waiting.ticket);
                state.settle(&mut completions);
            }
            completions.finish(&[]);
        }
    }
}

impl<B> std::fmt::Debug for OneWay<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OneWay({} {})", self.target.name, self.target.method)
    }
}

impl WaitReason {
    fn queue(self, state: &mut State) -> &mut Queue {
        match self {
            Self::Credit => &mut state.sends,
            Self::Flow => &mut state.flows,
        }
    }
}

/// Tries again for a sender that has waited. The time left is the timeout of the answer.
fn attempt_again(state: &mut State, outgoing: &Outgoing<'_>, waiting: QueuePosition) -> Attempt {
    let now = Instant::now();
    if waiting.until.is_some_and(|until| until <= now) {
        return Attempt::Failed(wait_timeout_error(state));
    }
    if waiting.reason == WaitReason::Credit && !state.sends.may_try(waiting.ticket) {
        return match state.life {
            Life::Open => Attempt::Wait(WaitReason::Credit),
            _ => Attempt::Failed(state.unavailable()),
        };
    }
    let timeout = Timeout::until(waiting.until, now);
    attempt(state, outgoing, timeout, Some(waiting.reason))
}

/// Sends if there is room. `came_from` is the queue in which the sender has waited.
fn attempt(
    state: &mut State,
    outgoing: &Outgoing<'_>,
    timeout: Timeout,
    came_from: Option<WaitReason>,
) -> Attempt {
    if state.life != Life::Open {
        return Attempt::Failed(state.unavailable());
    }
    let is_first = came_from == Some(WaitReason::Credit) || !state.sends.has_waiting();
    let reserved = match came_from {
        Some(WaitReason::Credit) => 0,
        _ => state.sends.woken(),
    };
    let calls_reserved = state.calls.woken();
    let Some(link) = &mut state.link else {
        return Attempt::Wait(WaitReason::Credit);
    };
    if link.routes.is_full(outgoing.target) {
        return Attempt::Wait(WaitReason::Flow);
    }
    let is_answered = outgoing.kind == Kind::WRITE || outgoing.flags.contains(Flags::REPORT);
    let size = outgoing.credit_size();
    let has_room = !is_answered || link.room() > calls_reserved;
    if !is_first || !has_room || link.credit() <= reserved || !link.fits(size) {
        return Attempt::Wait(WaitReason::Credit);
    }
    let sent = match is_answered {
        false => link.send(outgoing).map(|()| Attempt::Sent),
        true => link.send_reported(outgoing, timeout).map(|correlation| {
            let link = link.id;
            Attempt::Issued(CallId { link, correlation })
        }),
    };
    sent.unwrap_or_else(Attempt::Failed)
}

/// Enters the queue for `reason`, or stays in it.
fn wait(
    state: &mut State,
    reason: WaitReason,
    position: Option<QueuePosition>,
    timeout: Timeout,
    cx: &TaskContext<'_>,
) -> QueuePosition {
    if let Some(waiting) = position {
        if waiting.reason == reason {
            reason.queue(state).stay(waiting.ticket, cx.waker());
            return waiting;
        }
        waiting.reason.queue(state).leave(waiting.ticket);
    }
    let until = match position {
        Some(waiting) => waiting.until,
        None => timeout.deadline(Instant::now()),
    };
    let earliest = state.queue_deadline_min();
    let ticket = reason.queue(state).enter(cx.waker().clone(), until);
    if state.queue_deadline_min() != earliest {
        state.wake_sweeper();
    }
    QueuePosition {
        reason,
        ticket,
        until,
    }
}

fn no_room(reason: WaitReason) -> CallError {
    let message = match reason {
        WaitReason::Credit => {
            "the peer's window is full: it has not consumed the messages sent before"
        }
        WaitReason::Flow => "every subscriber of the name is full",
    };
    CallError::new(ErrorCode::Busy, message)
}

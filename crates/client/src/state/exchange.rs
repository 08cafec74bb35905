//! `Exchange`: one message and its answer, from waiting for room to the outcome.
//!
//! All operations with an answer use it. The caller keeps the message until there is room. Dropping
//! an exchange cancels it at the peer.

use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use model::ErrorCode;
use tokio::time::Instant;
use wire::Correlation;

use crate::state::clock::Timeout;
use crate::state::completions::Completions;
use crate::state::core::{Admission, Core, Life, State};
use crate::state::functions::Functions;
use crate::state::holder::Holder;
use crate::state::link::{Link, Outgoing, deadline_error};
use crate::state::outcome::Outcome;
use crate::state::queue::Ticket;
use crate::{CallError, Sent};

/// Behaviour while the window is full or there is no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Waits until the deadline.
    #[default]
    Wait,
    /// Fails at once with `busy` or `unavailable`.
    Busy,
}

/// Time limits of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitLimits {
    /// Limit from the start to the answer.
    pub(crate) timeout: Timeout,
    /// Limit from the start until there is room.
    pub(crate) wait: Timeout,
    pub(crate) when_full: WhenFull,
}

impl WaitLimits {
    /// Sets both limits to `timeout`.
    pub(crate) fn new(timeout: Timeout) -> Self {
        Self {
            timeout,
            wait: timeout,
            when_full: WhenFull::Wait,
        }
    }
}

/// An exchange on a borrowed (`&Core`) or owned (`Arc<Core>`) client.
pub(crate) struct Exchange<C: AsRef<Core>> {
    core: C,
    stage: Stage,
}

/// Identifies a call in flight: connection and correlation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallId {
    pub(crate) link: u64,
    pub(crate) correlation: Correlation,
}

/// Progress of an exchange.
#[derive(Clone, Copy)]
enum Stage {
    New,
    Queued {
        ticket: Ticket,
        wait_until: Option<Instant>,
        deadline: Option<Instant>,
    },
    InFlight(CallId),
    Done,
}

/// Outcome of an exchange, and its deadline if known.
pub(crate) struct ExchangeResult {
    pub(crate) outcome: Outcome,
    pub(crate) deadline: Option<Instant>,
}

/// Queues the message once there is room for it.
pub(crate) trait Issue:
    FnOnce(&mut Link, Timeout, &Waker) -> Result<Correlation, CallError>
{
}

impl<F: FnOnce(&mut Link, Timeout, &Waker) -> Result<Correlation, CallError>> Issue for F {}

impl<C: AsRef<Core>> Exchange<C> {
    pub(crate) fn new(core: C) -> Self {
        let stage = Stage::New;
        Self { core, stage }
    }

    /// Creates an exchange for a call that is in flight already.
    pub(crate) fn in_flight(core: C, call: CallId) -> Self {
        let stage = Stage::InFlight(call);
        Self { core, stage }
    }

    /// Sends a message with one answer and waits for the answer.
    pub(crate) fn poll(
        &mut self,
        outgoing: &Outgoing<'_>,
        limits: WaitLimits,
        cx: &mut Context<'_>,
    ) -> Poll<ExchangeResult> {
        let progress = self.poll_begin(limits, cx, |link, timeout, waker| {
            let holder = |_: &mut Functions| Holder::Future(Some(waker.clone()));
            link.issue(outgoing, timeout, &mut 0, holder)
        });
        match ready!(progress) {
            Ok(Progress::Sent(_)) => Poll::Pending,
            Ok(Progress::InFlight(call)) => self.poll_outcome(call, cx),
            Err(result) => Poll::Ready(result),
        }
    }

    /// Sends the message when there is room. Ready when it is queued or has failed.
    pub(crate) fn poll_begin(
        &mut self,
        limits: WaitLimits,
        cx: &mut Context<'_>,
        issue: impl Issue,
    ) -> Poll<Result<Progress, ExchangeResult>> {
        match self.stage {
            Stage::New => self.begin(limits, cx, issue),
            Stage::Queued {
                ticket,
                wait_until,
                deadline,
            } => self.resume(ticket, wait_until, deadline, cx, issue),
            Stage::InFlight(call) => Poll::Ready(Ok(Progress::InFlight(call))),
            Stage::Done => panic!("polled after it was ready"),
        }
    }

    fn begin(
        &mut self,
        limits: WaitLimits,
        cx: &mut Context<'_>,
        issue: impl Issue,
    ) -> Poll<Result<Progress, ExchangeResult>> {
        if limits.timeout.is_over() {
            return self.fail(deadline_error(Sent::No), None);
        }
        let mut guard = self.core.as_ref().state.lock();
        let state = &mut *guard;
        let outcome = match (state.admits_call(), limits.when_full) {
            (Admission::Open, _) => start(state, limits.timeout, cx, issue),
            (Admission::Full | Admission::Down, WhenFull::Wait) => {
                let now = Instant::now();
                let wait_until = limits.wait.deadline(now);
                self.stage = Stage::Queued {
                    ticket: enter_queue(state, cx, wait_until),
                    wait_until,
                    deadline: limits.timeout.deadline(now),
                };
                return Poll::Pending;
            }
            (Admission::Full, WhenFull::Busy) => Err(window_full_error(state.link.as_ref())),
            (Admission::Down | Admission::Closed, _) => Err(state.unavailable()),
        };
        drop(guard);
        match outcome {
            Ok(call) => self.set_in_flight(call),
            Err(error) => self.fail(error, None),
        }
    }

    /// Continues after a wake-up: there may be room, or the deadline may have passed.
    fn resume(
        &mut self,
        ticket: Ticket,
        wait_until: Option<Instant>,
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
        issue: impl Issue,
    ) -> Poll<Result<Progress, ExchangeResult>> {
        let now = Instant::now();
        let mut completions = Completions::default();
        let mut guard = self.core.as_ref().state.lock();
        let state = &mut *guard;
        let has_room = state.link.as_ref().is_some_and(|link| link.room() > 0);
        let outcome = if wait_until.is_some_and(|until| until <= now) {
            Some(Err(wait_timeout_error(state)))
        } else if state.life != Life::Open {
            Some(Err(state.unavailable()))
        } else if has_room && state.calls.may_try(ticket) {
            Some(start(state, Timeout::until(deadline, now), cx, issue))
        } else {
            state.calls.stay(ticket, cx.waker());
            None
        };
        if outcome.is_some() {
            state.calls.leave(ticket);
        }
        // Room that this caller does not use is offered to the next.
        if has_room && !matches!(outcome, Some(Ok(_))) {
            state.settle(&mut completions);
        }
        drop(guard);
        completions.finish(&[]);
        match outcome {
            None => Poll::Pending,
            Some(Ok(call)) => self.set_in_flight(call),
            Some(Err(error)) => self.fail(error, deadline),
        }
    }

    /// Waits for the one answer of a message in flight.
    pub(crate) fn poll_outcome(
        &mut self,
        call: CallId,
        cx: &mut Context<'_>,
    ) -> Poll<ExchangeResult> {
        let CallId { link, correlation } = call;
        let mut completions = Completions::default();
        let mut guard = self.core.as_ref().state.lock();
        let state = &mut *guard;
        let taken = state
            .link_mut(link)
            .and_then(|link| link.take(correlation, &mut completions));
        let Some((outcome, deadline)) = taken else {
            let holder = state
                .link_mut(link)
                .and_then(|link| link.pending.holder(correlation));
            match holder {
                Some(Holder::Future(waker)) => set_waker(waker, cx),
                Some(Holder::Subscribing(subscribing)) => set_waker(&mut subscribing.waker, cx),
                _ => unreachable!("a call that is under way has a holder"),
            }
            return Poll::Pending;
        };
        self.stage = Stage::Done;
        state.finish_change(link, &mut completions);
        state.remove_finished();
        drop(guard);
        completions.finish(&[]);
        Poll::Ready(ExchangeResult { outcome, deadline })
    }

    fn set_in_flight(&mut self, call: CallId) -> Poll<Result<Progress, ExchangeResult>> {
        self.stage = Stage::InFlight(call);
        Poll::Ready(Ok(Progress::Sent(call)))
    }

    fn fail(
        &mut self,
        error: CallError,
        deadline: Option<Instant>,
    ) -> Poll<Result<Progress, ExchangeResult>> {
        self.stage = Stage::Done;
        let outcome = Err(error);
        Poll::Ready(Err(ExchangeResult { outcome, deadline }))
    }
}

impl Exchange<Arc<Core>> {
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Cancels the exchange and prepares for another.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.core.clone());
    }
}

impl<C: AsRef<Core>> Drop for Exchange<C> {
    fn drop(&mut self) {
        let core = self.core.as_ref();
        match self.stage {
            Stage::New | Stage::Done => {}
            Stage::Queued { ticket, .. } => leave_queue(core, ticket),
            Stage::InFlight(call) => cancel_calls(core, [call]),
        }
    }
}

/// Says when a message was queued.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress {
    /// In this poll.
    Sent(CallId),
    /// In an earlier poll.
    InFlight(CallId),
}

fn start(
    state: &mut State,
    timeout: Timeout,
    cx: &Context<'_>,
    issue: impl Issue,
) -> Result<CallId, CallError> {
    let Some(link) = &mut state.link else {
        return Err(state.unavailable());
    };
    let correlation = issue(link, timeout, cx.waker())?;
    let link = link.id;
    Ok(CallId { link, correlation })
}

/// Gives up calls and cancels them at the peer.
pub(crate) fn cancel_calls(core: &Core, calls: impl IntoIterator<Item = CallId>) {
    let mut completions = Completions::default();
    {
        let mut state = core.state.lock();
        for CallId { link, correlation } in calls {
            let Some(found) = state.link_mut(link) else {
                continue;
            };
            if found.pending.abandon(correlation, &mut completions) {
                completions.cancels.push(correlation);
            }
            state.finish_change(link, &mut completions);
        }
        state.remove_finished();
    }
    completions.finish(&[]);
}

/// Enters the queue of callers that wait for room.
pub(crate) fn enter_queue(
    state: &mut State,
    cx: &Context<'_>,
    deadline: Option<Instant>,
) -> Ticket {
    let earliest = state.queue_deadline_min();
    let ticket = state.calls.enter(cx.waker().clone(), deadline);
    if state.queue_deadline_min() != earliest {
        state.wake_sweeper();
    }
    ticket
}

/// Leaves the queue of callers that wait for room; the offered room goes to the next.
pub(crate) fn leave_queue(core: &Core, ticket: Ticket) {
    let mut completions = Completions::default();
    {
        let mut state = core.state.lock();
        state.calls.leave(ticket);
        state.settle(&mut completions);
    }
    completions.finish(&[]);
}

pub(crate) fn window_full_error(link: Option<&Link>) -> CallError {
    let count = link.map_or(0, |link| link.pending.occupied());
    let message =
        format!("the window of this client is full: {count} calls are in flight (`in_flight_max`)");
    CallError::new(ErrorCode::Busy, message)
}

/// Returns the error for a caller that has waited until its deadline.
pub(crate) fn wait_timeout_error(state: &State) -> CallError {
    match &state.link {
        Some(_) => deadline_error(Sent::No),
        None => state.unavailable(),
    }
}

/// Replaces the waker unless it wakes the same task.
pub(crate) fn set_waker(waker: &mut Option<Waker>, cx: &Context<'_>) {
    let is_same = |waker: &Waker| waker.will_wake(cx.waker());
    if !waker.as_ref().is_some_and(is_same) {
        *waker = Some(cx.waker().clone());
    }
}

//! `Callbacks`: calls whose replies are passed to a function.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use parking_lot::MutexGuard;
use tokio::time::Instant;
use wire::{Flags, Kind};

use crate::state::clock::Timeout;
use crate::state::core::{Admission, Core, Life, State};
use crate::state::exchange::{enter_queue, leave_queue, window_full_error};
use crate::state::functions::{Function, Functions};
use crate::state::holder::Holder;
use crate::state::link::{Outgoing, deadline_error, to_method};
use crate::state::outcome::OnceFunction;
use crate::state::queue::Ticket;
use crate::state::reply_batch::ReplyBatch;
use crate::state::routes::Hint;
use crate::{CallError, Caller, Sent};

/// A method, and a function for the replies to any number of calls, from [`Caller::callbacks`].
///
/// A tag identifies each call; a call allocates nothing. For every call that [`Callbacks::call`]
/// accepts, the function is called exactly once: with the reply, with the handler's error, when the
/// deadline passes, or when the connection is lost. The connection's task calls the function, so it
/// must not block; it may make further calls.
///
/// ```
/// use telpher_client::{Caller, Server};
/// use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = Server::new().handle("echo", |request: telpher_client::Request| async { Ok(request.body) });
/// # let listening = server.listen("tcp://127.0.0.1:0").await?;
/// let caller = Caller::connect(listening.address()).await?;
/// let (done, mut all_done) = tokio::sync::mpsc::unbounded_channel();
/// let callbacks = caller.callbacks("echo", move |tag, outcome| {
///     let _ = done.send((tag, outcome.map(<[u8]>::len).map_err(Clone::clone)));
/// });
/// for tag in 0..3 {
///     callbacks.call(tag, "hello")?;
/// }
/// for tag in 0..3 {
///     assert_eq!(all_done.recv().await, Some((tag, Ok(5))));
/// }
/// # Ok(())
/// # }
/// ```
pub struct Callbacks {
    caller: Caller,
    method: Box<str>,
    function: Function,
    /// Index of the function in the connection's table at the last call.
    function_index: AtomicU32,
    timeout: Timeout,
    /// Route hint of the method.
    hint: AtomicU64,
}

impl Caller {
    /// Calls a method many times and passes every reply to one function, without a future, a
    /// channel or an allocation per call. See [`Callbacks`].
    pub fn callbacks<F>(&self, method: &str, function: F) -> Callbacks
    where
        F: Fn(u64, Result<&[u8], &CallError>) + Send + Sync + 'static,
    {
        self.callbacks_in_batches(method, move |batch| {
            for (tag, outcome) in batch {
                function(tag, outcome);
            }
        })
    }

    /// Calls a method many times like [`Caller::callbacks`], and passes the outcomes that arrive
    /// together to the function together. It can then make the next calls together, with
    /// [`Callbacks::call_many`]. Outcomes that the function does not take from the iterator are
    /// dropped. After a panic the function is called again with those that it had not taken.
    pub fn callbacks_in_batches<F>(&self, method: &str, function: F) -> Callbacks
    where
        F: Fn(&mut ReplyBatch<'_>) + Send + Sync + 'static,
    {
        Callbacks::new(self.clone(), method, function)
    }

    /// Calls a method once and passes the outcome to `function`, exactly once. The connection's
    /// task calls `function`, so it must not block. Fails, without calling `function`, when the
    /// window is full or there is no connection.
    pub fn on_reply<F>(
        &self,
        method: &str,
        body: impl AsRef<[u8]>,
        function: F,
    ) -> Result<(), CallError>
    where
        F: FnOnce(Result<&[u8], &CallError>) + Send + 'static,
    {
        on_reply(self, method, body.as_ref(), Box::new(function))
    }
}

impl Callbacks {
    pub(crate) fn new<F>(caller: Caller, method: &str, function: F) -> Self
    where
        F: Fn(&mut ReplyBatch<'_>) + Send + Sync + 'static,
    {
        let timeout = caller.core().options.deadline;
        Self {
            caller,
            method: method.into(),
            function: Function::new(Arc::new(function)),
            function_index: AtomicU32::new(0),
            timeout,
            hint: AtomicU64::new(0),
        }
    }

    /// Sets how long each call may take; `None` for no limit.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.timeout = Timeout::new(deadline.into());
        self
    }

    /// Makes a call. Fails, without calling the function, when the window is full (`busy`), there
    /// is no connection (`unavailable`) or the body is too large.
    pub fn call(&self, tag: u64, body: impl AsRef<[u8]>) -> Result<(), CallError> {
        self.call_many(&[(tag, body.as_ref())])
            .map_err(|refused| refused.error)
    }

    /// Makes several calls, each with its tag and body, in order. Fails at the first one that
    /// [`Callbacks::call`] would refuse; the calls before it are made.
    pub fn call_many(&self, calls: &[(u64, &[u8])]) -> Result<(), RefusedCall> {
        let known = self.hint.load(Ordering::Relaxed);
        let mut hint = known;
        let outcome = self.send_all(calls, &mut hint);
        if hint != known {
            self.hint.store(hint, Ordering::Relaxed);
        }
        outcome
    }

    #[inline]
    fn send_all(&self, calls: &[(u64, &[u8])], hint: &mut Hint) -> Result<(), RefusedCall> {
        if calls.is_empty() {
            return Ok(());
        }
        let refused = |accepted, error| RefusedCall { accepted, error };
        let mut state =
            lock_in_time(self.caller.core(), self.timeout).map_err(|error| refused(0, error))?;
        for (accepted, &(tag, body)) in calls.iter().enumerate() {
            let outgoing = request(self.caller.name(), &self.method, body);
            let holder = |functions: &mut Functions| {
                let known = self.function_index.load(Ordering::Relaxed);
                let index = functions.enter(&self.function, known);
                if index != known {
                    self.function_index.store(index, Ordering::Relaxed);
                }
                Holder::Callback(index, tag)
            };
            issue_call(&mut state, &outgoing, self.timeout, hint, holder)
                .map_err(|error| refused(accepted, error))?;
        }
        Ok(())
    }

    /// Waits until a call would be accepted. Fails with `unavailable` when the client is closed.
    pub async fn ready(&self) -> Result<(), CallError> {
        let mut waiting = RoomWaiter {
            core: self.caller.core(),
            ticket: None,
        };
        poll_fn(|cx| waiting.poll(cx)).await
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        let mut state = self.caller.core().state.lock();
        for link in state.links_mut() {
            link.pending.functions.close(&self.function);
        }
    }
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Callbacks({} {})", self.caller.name(), self.method)
    }
}

/// Error of [`Callbacks::call_many`]. The function is not called for the refused call and those after
/// it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("call {accepted} of a batch (from 0) was refused: {error}")]
pub struct RefusedCall {
    /// Number of calls before the refused one, which were made.
    pub accepted: usize,
    /// Reason for the refusal.
    pub error: CallError,
}

/// Makes one call and passes its outcome to `function`.
pub(crate) fn on_reply(
    caller: &Caller,
    method: &str,
    body: &[u8],
    function: OnceFunction,
) -> Result<(), CallError> {
    let timeout = caller.core().options.deadline;
    let outgoing = request(caller.name(), method, body);
    let mut state = lock_in_time(caller.core(), timeout)?;
    issue_call(&mut state, &outgoing, timeout, &mut 0, |_| {
        Holder::Once(function)
    })
}

fn request<'a>(name: &'a str, method: &'a str, body: &'a [u8]) -> Outgoing<'a> {
    Outgoing {
        kind: Kind::REQUEST,
        flags: Flags::NONE,
        target: to_method(name, method),
        metadata: &[],
        body,
    }
}

/// Locks the state for calls with this timeout, unless it is over.
#[inline]
fn lock_in_time(core: &Core, timeout: Timeout) -> Result<MutexGuard<'_, State>, CallError> {
    match timeout.is_over() {
        true => Err(deadline_error(Sent::No)),
        false => Ok(core.state.lock()),
    }
}

/// Queues a request and registers the holder of its reply.
#[inline]
fn issue_call(
    state: &mut State,
    outgoing: &Outgoing<'_>,
    timeout: Timeout,
    hint: &mut Hint,
    holder: impl FnOnce(&mut Functions) -> Holder,
) -> Result<(), CallError> {
    match state.admits_call() {
        Admission::Open => {}
        Admission::Full => return Err(window_full_error(state.link.as_ref())),
        Admission::Down | Admission::Closed => return Err(state.unavailable()),
    }
    let Some(link) = &mut state.link else {
        return Err(state.unavailable());
    };
    // `holder` runs after the last failure, so a refused call leaves nothing that would have to be
    // dropped under the lock.
    link.issue(outgoing, timeout, hint, holder)?;
    Ok(())
}

/// A ticket in the queue of callers that wait for room. Dropping it leaves the queue.
struct RoomWaiter<'a> {
    core: &'a Core,
    ticket: Option<Ticket>,
}

impl RoomWaiter<'_> {
    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), CallError>> {
        let mut guard = self.core.state.lock();
        let state = &mut *guard;
        let Some(ticket) = self.ticket else {
            return match state.admits_call() {
                Admission::Open => Poll::Ready(Ok(())),
                Admission::Closed => Poll::Ready(Err(state.unavailable())),
                Admission::Full | Admission::Down => {
                    self.ticket = Some(enter_queue(state, cx, None::<Instant>));
                    Poll::Pending
                }
            };
        };
        let has_room = state.link.as_ref().is_some_and(|link| link.room() > 0);
        if state.life != Life::Open {
            return Poll::Ready(Err(state.unavailable()));
        }
        if has_room && state.calls.may_try(ticket) {
            return Poll::Ready(Ok(()));
        }
        state.calls.stay(ticket, cx.waker());
        Poll::Pending
    }
}

impl Drop for RoomWaiter<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            leave_queue(self.core, ticket);
        }
    }
}

//! `Quota`: takes from the limits of a node before an action.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use telpher_client::Client;
//! use telpher_client::quota::{Outcome, Take};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let quota = Client::connect("tcp://127.0.0.1:7400").await?.quota();
//! // The cost of a model call is known afterwards: a hold reserves an estimate until then.
//! let take = Take::of("acme/search/bot").cost("tokens", 4_000).hold(Duration::from_secs(60));
//! match quota.take(&take).await? {
//!     Outcome::Admitted(admitted) => {
//!         let hold = admitted.hold.ok_or("the take asked for a hold")?;
//!         hold.settle(&[("tokens", 1_234)]).await?;
//!     }
//!     Outcome::Denied(denied) => println!("{denied}"),
//! }
//! # Ok(())
//! # }
//! ```

mod hold;
mod outcome;
mod take;

use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use model::ErrorCode;
use tokio::time::Instant;
use wire::{Correlation, Flags, Kind, TAKES_MAX, encode_frame};

use crate::state::clock::Timeout;
use crate::state::exchange::{Exchange, Progress, WaitLimits};
use crate::state::holder::Holder;
use crate::state::link::Link;
use crate::{CallError, Client, RetryPolicy};

pub use hold::Hold;
pub use outcome::{Admitted, Denied, LimitState, Outcome};
pub use take::Take;

/// Quotas of a node, from [`Client::quota`]. Cheap to clone.
///
/// Every operation ends once: with an outcome, or with an error that says whether anything may have
/// been taken. After `unconfirmed` or `deadline_exceeded` it may have been; a take with an
/// [id](Take::id) can be retried then.
#[derive(Clone, Debug)]
pub struct Quota {
    client: Client,
    deadline: Timeout,
    retry: Option<RetryPolicy>,
}

impl Client {
    /// Returns the quotas of the connected node.
    pub fn quota(&self) -> Quota {
        Quota {
            client: self.clone(),
            deadline: self.core().options.deadline,
            retry: None,
        }
    }
}

impl Quota {
    /// Sets how long an operation may take, including all retries and in addition to the time that
    /// a take [waits](Take::wait); `None` for no limit.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = Timeout::new(deadline.into());
        self
    }

    /// Retries failed operations where that is safe. Batches in which every take has an id, and
    /// operations other than takes, are also retried when they may have been executed. A denied
    /// take is not a failure.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Takes from every limit that covers the subject, or from none.
    pub async fn take(&self, take: &Take) -> Result<Outcome, CallError> {
        let mut outcomes = self.take_batch(std::slice::from_ref(take)).await?;
        match outcomes.pop() {
            Some(outcome) if outcomes.is_empty() => outcome,
            _ => Err(mismatch()),
        }
    }

    /// Decides up to 1,024 takes in order, with one request and one answer. A take in a batch of
    /// several must not wait. Each take has its own outcome. Takes from limits that are `sync` are
    /// answered when all of them are on disk.
    pub async fn take_batch(
        &self,
        takes: &[Take],
    ) -> Result<Vec<Result<Outcome, CallError>>, CallError> {
        if takes.is_empty() {
            return Ok(Vec::new());
        }
        if takes.len() > TAKES_MAX {
            let message = format!(
                "{} takes in a batch are above the limit of {TAKES_MAX}",
                takes.len()
            );
            return Err(CallError::new(ErrorCode::TooLarge, message));
        }
        let mut body = Vec::new();
        for take in takes {
            take.encode(&mut body)?;
        }
        let may_repeat = takes.iter().all(Take::has_id);
        let waiting = takes.iter().map(Take::waiting).max().unwrap_or_default();
        let timeout = self.deadline.after(waiting);
        let payload = self.ask(Kind::TAKE, &body, timeout, may_repeat).await?;
        let outcomes = outcome::decode(&payload, self)?;
        match outcomes.len() == takes.len() {
            true => Ok(outcomes),
            false => Err(mismatch()),
        }
    }

    /// Returns the state of every limit that covers the subject; takes nothing.
    pub async fn peek(&self, subject: &str) -> Result<Vec<LimitState>, CallError> {
        let mut frame = Vec::new();
        take::check_subject(subject)?;
        wire::encode_peek(subject, Correlation::NONE, &mut frame);
        let body = &frame[wire::HEADER_SIZE..];
        let payload = self.ask(Kind::PEEK, body, self.deadline, true).await?;
        match outcome::decode(&payload, self)?.pop() {
            Some(Ok(Outcome::Admitted(admitted))) => Ok(admitted.limits),
            _ => Err(mismatch()),
        }
    }

    /// Returns the hold with this id, which may be from another process.
    pub fn hold(&self, id: u128) -> Hold {
        Hold::new(self.clone(), id, None)
    }

    /// Sends a request, with retries by the policy.
    async fn ask(
        &self,
        kind: Kind,
        body: &[u8],
        timeout: Timeout,
        may_repeat: bool,
    ) -> Result<Bytes, CallError> {
        let policy = match may_repeat {
            true => self.retry.map(RetryPolicy::idempotent),
            false => self.retry,
        };
        let deadline = timeout.deadline(Instant::now());
        let mut made = 0;
        loop {
            let timeout = Timeout::until(deadline, Instant::now());
            let error = match self.attempt(kind, body, timeout).await {
                Ok(payload) => return Ok(payload),
                Err(error) => error,
            };
            made += 1;
            let pause = policy.and_then(|policy| policy.pause(&error, made));
            let until = pause.map(|pause| Instant::now() + pause);
            match until.filter(|until| deadline.is_none_or(|deadline| *until < deadline)) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return Err(error),
            }
        }
    }

    async fn attempt(&self, kind: Kind, body: &[u8], timeout: Timeout) -> Result<Bytes, CallError> {
        let mut exchange = Exchange::new(self.client.core());
        let result = poll_fn(|cx| {
            let progress =
                exchange.poll_begin(WaitLimits::new(timeout), cx, |link, timeout, waker| {
                    check(link, body.len())?;
                    let holder = Holder::Future(Some(waker.clone()));
                    Ok(link.queue_request(timeout, holder, |correlation, out| {
                        encode_frame(out, kind, Flags::NONE, 0, correlation, |out| {
                            out.extend_from_slice(body);
                        });
                    }))
                });
            match ready!(progress) {
                Ok(Progress::Sent(_)) => Poll::Pending,
                Ok(Progress::InFlight(call)) => exchange.poll_outcome(call, cx),
                Err(result) => Poll::Ready(result),
            }
        });
        result.await.outcome
    }
}

/// Checks that the peer is a node and accepts a request of `size` bytes.
fn check(link: &Link, size: usize) -> Result<(), CallError> {
    let limit = link.peer.window.frame_size_max;
    match link.peer.role {
        wire::Role::Server => {
            let message = format!("{} is a server: only a node has quotas", link.peer.address);
            Err(CallError::new(ErrorCode::Unsupported, message))
        }
        wire::Role::Node if size > limit as usize => {
            let message = format!("takes of {size} bytes are above the limit of {limit}");
            Err(CallError::new(ErrorCode::TooLarge, message))
        }
        wire::Role::Node => Ok(()),
    }
}

fn mismatch() -> CallError {
    let message = "the answer does not match the request";
    CallError::new(ErrorCode::Protocol, message).with_sent(crate::Sent::Yes)
}

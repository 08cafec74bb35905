//! Deadlines of requests that wait for the disk.
//!
//! Every waiting answer has a deadline: that of the request, or a common one. A write that is not
//! confirmed by then may still become durable. The answer is then an error that says neither that
//! it is done nor that it is not, and after which clients retry.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::errors::{Coded, Failed};

/// The deadline where the request states none. Most clients give up after 30 s and then consider
/// the connection broken, so the answer comes earlier.
const WAIT: Duration = Duration::from_secs(25);

/// The longest deadline.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// The shortest time for the disk, even if the request states less: some clients send 0, which
/// Kafka ignores on a single broker.
const DISK_WAIT_MIN: Duration = Duration::from_secs(1);

const LATE: &str = "the write was not confirmed in time, and may still succeed";

/// A deadline; see the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline of a request that states no timeout.
    pub(super) fn usual() -> Self {
        Self(Instant::now() + WAIT)
    }

    /// Returns the deadline of a request that waits this long for other clients, and then for the
    /// disk.
    pub(super) fn behind(others_ms: u32) -> Self {
        let others = Duration::from_millis(others_ms.into());
        Self(Instant::now() + others + WAIT)
    }

    /// Returns the deadline of a request that states a timeout.
    pub(super) fn asked(timeout_ms: i32) -> Self {
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        Self(Instant::now() + timeout.min(WAIT_MAX))
    }

    /// Returns the deadline of a request that states a timeout and waits for nothing but the disk.
    pub(super) fn asked_of_disk(timeout_ms: i32) -> Self {
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        Self(Instant::now() + timeout.clamp(DISK_WAIT_MIN, WAIT_MAX))
    }

    /// Returns the deadline, but at least [`DISK_WAIT_MIN`] from now.
    pub(super) fn for_disk(self) -> Self {
        Self(self.0.max(Instant::now() + DISK_WAIT_MIN))
    }

    /// Returns the time of the deadline.
    pub(super) fn instant(self) -> Instant {
        self.0
    }

    /// Waits for an outcome until the deadline. An outcome that is not known by then becomes the
    /// error that `E` defines for it.
    pub(super) async fn known<T, E: Coded>(
        self,
        waiting: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, Failed> {
        let outcome = timeout_at(self.0, waiting).await;
        outcome.map_err(|_| Self::failed::<E>())
    }

    /// Returns the error of an outcome that is not known at the deadline.
    pub(super) fn failed<E: Coded>() -> Failed {
        Failed::new(E::LATE, LATE)
    }

    /// Waits for an outcome until the deadline, and converts its error to Kafka's.
    pub(super) async fn outcome<T, E: Coded>(
        self,
        waiting: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failed> {
        self.known(waiting).await?.map_err(Failed::from)
    }
}

/// The timer of a connection for the deadlines of its waiting answers. An answer with a later deadline
/// does not reset it: when it fires too early, it is set again. So a request has no timer of its own.
#[derive(Debug, Default)]
pub(super) struct DeadlineTimer(Option<Pin<Box<Sleep>>>);

impl DeadlineTimer {
    /// Ready when the deadline is over; until then the task is woken at that time or earlier.
    pub(super) fn poll_over(&mut self, cx: &mut Context<'_>, deadline: Deadline) -> Poll<()> {
        let timer = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(deadline.0)));
        if timer.deadline() > deadline.0 {
            timer.as_mut().reset(deadline.0);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= deadline.0 {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline.0);
        }
    }

    /// Frees a timer that has fired. Call it when no answer waits.
    pub(super) fn rest(&mut self) {
        self.0 = self.0.take().filter(|timer| !timer.is_elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_timer_serves_deadlines_that_move_back_and_forth() {
        let (start, mut timer) = (Instant::now(), DeadlineTimer::default());
        for seconds in [5, 20, 7, 30] {
            let deadline = Deadline(start + Duration::from_secs(seconds));
            let is_over = deadline.0 <= Instant::now();
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert_eq!(timer.poll_over(&mut cx, deadline).is_ready(), is_over);
            std::future::poll_fn(|cx| timer.poll_over(cx, deadline)).await;
            let late = Instant::now().saturating_duration_since(deadline.0.max(start));
            assert!(Instant::now() >= deadline.0);
            assert!(is_over || late <= Duration::from_millis(1), "{late:?}");
        }
        timer.rest();
        assert!(timer.0.is_none());
    }
}

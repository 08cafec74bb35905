//! Trying again, where that is safe.

use std::time::Duration;

use model::Retry;

use crate::CallError;
use crate::driver::full_jitter;

/// When a failed call is repeated, within its deadline.
///
/// Only failures that say that the call was not executed are repeated (`no_responder`, `busy`,
/// `throttled`, `unavailable`, and whatever was never sent). Those after which it may have been
/// executed are repeated too once [`RetryPolicy::idempotent`] says that twice is as good as once.
/// The pause before each attempt is a random part of `pause_min`, doubled with every attempt up to
/// `pause_max`, and never less than the other side asked for.
///
/// ```
/// use telpher_client::RetryPolicy;
///
/// let policy = RetryPolicy::attempts(5).idempotent();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    attempts: u32,
    pause_min: Duration,
    pause_max: Duration,
    is_idempotent: bool,
}

impl RetryPolicy {
    /// At most `count` attempts in all, with pauses from 10 ms to 1 s.
    pub const fn attempts(count: u32) -> Self {
        Self {
            attempts: count,
            pause_min: Duration::from_millis(10),
            pause_max: Duration::from_secs(1),
            is_idempotent: false,
        }
    }

    /// Other pauses.
    #[must_use]
    pub const fn pauses(mut self, min: Duration, max: Duration) -> Self {
        self.pause_min = min;
        self.pause_max = max;
        self
    }

    /// Twice is as good as once: repeats also what may have been executed.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self
    }

    /// How long to wait before the next attempt, if there is to be one after `made` attempts.
    pub(crate) fn pause(&self, error: &CallError, made: u32) -> Option<Duration> {
        let may_repeat = match error.retry() {
            Retry::Never => false,
            Retry::Safe => true,
            Retry::MayDuplicate => self.is_idempotent,
        };
        if !may_repeat || made >= self.attempts {
            return None;
        }
        let mut random = fastrand::Rng::new();
        let (min, max) = (self.pause_min, self.pause_max);
        let pause = full_jitter(&mut random, min, max, made.saturating_sub(1));
        Some(pause.max(error.retry_after.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use model::ErrorCode;

    use super::*;
    use crate::Sent;

    #[test]
    fn only_what_is_safe_is_repeated() {
        let policy = RetryPolicy::attempts(3);
        for code in ErrorCode::ALL {
            let error = CallError::new(code, "x").with_sent(Sent::Unknown);
            let is_safe = code.retry() == Retry::Safe;
            assert_eq!(policy.pause(&error, 1).is_some(), is_safe, "{code}");
            let may = code.retry() != Retry::Never;
            assert_eq!(policy.idempotent().pause(&error, 1).is_some(), may);
            assert_eq!(policy.idempotent().pause(&error, 3), None);
        }
    }

    #[test]
    fn the_other_side_decides_how_long_to_wait_at_least() {
        let mut error = CallError::new(ErrorCode::Throttled, "x");
        error.retry_after = Some(Duration::from_secs(3));
        let pause = RetryPolicy::attempts(2).pause(&error, 1).unwrap();
        assert!(pause >= Duration::from_secs(3));
    }
}

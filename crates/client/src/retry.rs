//! `RetryPolicy`: retries of failed calls, where a retry is safe.

use std::time::Duration;

use model::Retry;

use crate::CallError;

/// Retry policy for failed calls, within the deadline of the call.
///
/// Only calls that were certainly not executed are retried (`no_responder`, `busy`, `throttled`,
/// `unavailable`, and calls that were never sent). [`RetryPolicy::idempotent`] also retries calls
/// that may have been executed. The pause before an attempt is random between zero and a limit that
/// starts at `pause_min` and doubles with every attempt up to `pause_max`; it is at least the time
/// that the peer asked for.
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
    /// Allows `count` attempts in total, with pauses from 10 ms to 1 s.
    pub const fn attempts(count: u32) -> Self {
        Self {
            attempts: count,
            pause_min: Duration::from_millis(10),
            pause_max: Duration::from_secs(1),
            is_idempotent: false,
        }
    }

    /// Sets the limits of the pauses.
    #[must_use]
    pub const fn pauses(mut self, min: Duration, max: Duration) -> Self {
        self.pause_min = min;
        self.pause_max = max;
        self
    }

    /// Also retries calls that may have been executed, because executing them twice does no harm.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self
    }

    /// Returns the pause before the next attempt, or `None` if `made` attempts were enough.
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

/// Returns a random duration below `min * 2^attempt`, and below `max`.
pub(crate) fn full_jitter(
    random: &mut fastrand::Rng,
    min: Duration,
    max: Duration,
    attempt: u32,
) -> Duration {
    let ceiling = min.saturating_mul(1 << attempt.min(20)).min(max);
    ceiling.mul_f64(random.f64())
}

#[cfg(test)]
mod tests {
    use model::ErrorCode;

    use super::*;
    use crate::Sent;

    #[test]
    fn only_safe_calls_are_retried() {
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
    fn retry_pauses_respect_the_peers_retry_after() {
        let mut error = CallError::new(ErrorCode::Throttled, "x");
        error.retry_after = Some(Duration::from_secs(3));
        let pause = RetryPolicy::attempts(2).pause(&error, 1).unwrap();
        assert!(pause >= Duration::from_secs(3));
    }

    #[test]
    fn pauses_grow_up_to_their_limit_and_repeat_with_the_seed() {
        let (min, max) = (Duration::from_millis(50), Duration::from_secs(5));
        let pauses = || {
            let mut random = fastrand::Rng::with_seed(7);
            (0..12)
                .map(|attempt| full_jitter(&mut random, min, max, attempt))
                .collect::<Vec<_>>()
        };
        assert_eq!(pauses(), pauses());
        for (attempt, pause) in pauses().into_iter().enumerate() {
            let ceiling = min.saturating_mul(1 << attempt).min(max);
            assert!(pause <= ceiling);
        }
    }
}

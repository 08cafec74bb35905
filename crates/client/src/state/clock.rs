//! Deadlines in whole milliseconds since the start of a connection.
//!
//! A call stores its duration; the connection's task sets the start of a whole batch of calls with
//! one reading of the clock. Rounding never makes a deadline early.

use std::time::Duration;

use tokio::time::Instant;

/// Duration limit in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timeout(u32);

/// Time in milliseconds since the start of the connection.
pub(crate) type Millis = u64;

/// A time that never comes.
pub(crate) const NEVER: Millis = Millis::MAX;

impl Timeout {
    /// No limit.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Rounds up to milliseconds; more than 49 days means no limit.
    pub(crate) fn new(duration: Option<Duration>) -> Self {
        match duration {
            None => Self::NONE,
            Some(duration) => Self(round_up(duration).try_into().unwrap_or(u32::MAX)),
        }
    }

    /// Returns the time left until `deadline`.
    pub(crate) fn until(deadline: Option<Instant>, now: Instant) -> Self {
        Self::new(deadline.map(|deadline| deadline.saturating_duration_since(now)))
    }

    /// Returns the milliseconds for the wire format; `None` for no limit.
    pub(crate) fn as_wire(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }

    /// Returns the duration; `None` for no limit.
    pub(crate) fn as_duration(self) -> Option<Duration> {
        self.as_wire()
            .map(|milliseconds| Duration::from_millis(milliseconds.into()))
    }

    /// Returns this limit plus `pause`.
    pub(crate) fn after(self, pause: Duration) -> Self {
        Self::new(self.as_duration().map(|own| own.saturating_add(pause)))
    }

    pub(crate) fn is_over(self) -> bool {
        self.0 == 0
    }

    /// Returns the end of a limit that starts at `start`.
    pub(crate) fn end(self, start: Millis) -> Millis {
        match self.as_wire() {
            Some(milliseconds) => start + Millis::from(milliseconds),
            None => NEVER,
        }
    }

    /// Returns the end of a limit that starts at `start`; `None` for no limit.
    pub(crate) fn deadline(self, start: Instant) -> Option<Instant> {
        self.as_duration().map(|duration| start + duration)
    }
}

/// Start time of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(Instant);

impl Epoch {
    pub(crate) fn new(now: Instant) -> Self {
        Self(now)
    }

    /// Converts a start time, rounded up.
    pub(crate) fn start(self, now: Instant) -> Millis {
        round_up(now.saturating_duration_since(self.0))
    }

    /// Converts the current time, rounded down.
    pub(crate) fn reached(self, now: Instant) -> Millis {
        now.saturating_duration_since(self.0).as_millis() as Millis
    }

    /// Converts back to an instant; `None` for [`NEVER`].
    pub(crate) fn instant(self, moment: Millis) -> Option<Instant> {
        (moment != NEVER).then(|| self.0 + Duration::from_millis(moment))
    }
}

fn round_up(duration: Duration) -> Millis {
    duration.as_nanos().div_ceil(1_000_000) as Millis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rounding_never_makes_a_deadline_early() {
        let began = Instant::now();
        let epoch = Epoch::new(began);
        let start = began + Duration::from_micros(1_200);
        let timeout = Timeout::new(Some(Duration::from_micros(900)));
        let end = timeout.end(epoch.start(start));
        assert_eq!((timeout.as_wire(), end), (Some(1), 3));
        assert!(epoch.reached(start + Duration::from_micros(900)) < end);
        assert_eq!(epoch.reached(epoch.instant(end).unwrap()), end);
    }

    #[test]
    fn very_long_timeouts_mean_no_limit() {
        let century = Duration::from_secs(100 * 365 * 86_400);
        assert_eq!(Timeout::new(Some(century)), Timeout::NONE);
        assert_eq!(Timeout::NONE.end(7), NEVER);
        assert!(Timeout::new(Some(Duration::ZERO)).is_over());
    }
}

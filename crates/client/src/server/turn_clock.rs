//! `TurnClock`: the time as seen by the requests of one turn.

use std::time::Duration;

use tokio::time::Instant;

/// Error: the deadline of a request passed before its turn.
#[derive(Debug)]
pub(super) struct DeadlinePassed;

/// Clock for the requests of one turn. It is read once, and again after several requests, because
/// their handlers take time.
#[derive(Default)]
pub(super) struct TurnClock {
    start: Option<Instant>,
    /// Milliseconds and deadline of the last request, with the number of consecutive repetitions
    /// below.
    last: Option<(u32, Instant)>,
    repeated: u32,
}

/// A request with less time than this reads the clock.
const URGENT_MS: u32 = 1_000;

/// Number of consecutive requests that share one reading of the clock.
const REPEATED_MAX: u32 = 16;

impl TurnClock {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the deadline of a request with this much time left.
    #[inline]
    pub(super) fn deadline(
        &mut self,
        remaining_ms: Option<u32>,
    ) -> Result<Option<Instant>, DeadlinePassed> {
        let Some(milliseconds) = remaining_ms else {
            return Ok(None);
        };
        match self.last {
            Some((last, deadline)) if last == milliseconds && self.repeated < REPEATED_MAX => {
                self.repeated += 1;
                Ok(Some(deadline))
            }
            _ => self.look(milliseconds).map(Some),
        }
    }

    fn look(&mut self, milliseconds: u32) -> Result<Instant, DeadlinePassed> {
        let now = Instant::now();
        let start = *self.start.get_or_insert(now);
        let deadline = start + Duration::from_millis(milliseconds.into());
        if deadline <= now {
            return Err(DeadlinePassed);
        }
        if milliseconds >= URGENT_MS {
            self.last = Some((milliseconds, deadline));
            self.repeated = 0;
        }
        Ok(deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_behind_slow_ones_expires_before_it_runs() {
        let mut clock = TurnClock::default();
        assert!(clock.deadline(Some(0)).is_err());
        assert!(clock.deadline(Some(500)).is_ok());
        tokio::time::advance(Duration::from_millis(600)).await;
        assert!(clock.deadline(Some(500)).is_err());
        assert_eq!(clock.deadline(None).unwrap(), None);
        clock.reset();
        assert!(clock.deadline(Some(500)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn consecutive_requests_share_a_clock_reading() {
        let mut clock = TurnClock::default();
        assert!(clock.deadline(Some(5_000)).is_ok());
        tokio::time::advance(Duration::from_secs(6)).await;
        let accepted = (0..100)
            .take_while(|_| clock.deadline(Some(5_000)).is_ok())
            .count();
        assert_eq!(accepted, REPEATED_MAX as usize);
    }
}

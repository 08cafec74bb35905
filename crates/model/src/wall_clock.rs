//! A wall clock that ignores wrong steps, so that they delete nothing.
//!
//! Retention, time-to-live and erasure compare the time of a record with the wall clock. A wall
//! clock that steps forward by mistake would delete everything at once. [`WallClock`] takes
//! readings of the wall clock and a steady clock. It follows small corrections, and every step
//! back, at once. After a larger step forward it continues as if the step had not happened, until
//! the step has lasted [`CONFIRM_MS`] of steady time. So it is never ahead of the wall clock.

/// A step forward of at most this many milliseconds is followed at once: 5 minutes, more than time
/// synchronization corrects without notice, and less than any useful retention.
pub const STEP_MS_MAX: u64 = 5 * 60_000;

/// A larger step is followed after this many milliseconds of steady time: 10 minutes, longer than
/// time synchronization takes to correct a clock that was wrong at boot or resume.
pub const CONFIRM_MS: u64 = 10 * 60_000;

/// A wall clock without unconfirmed steps forward. It is pure: callers pass the readings of both
/// clocks.
///
/// ```text
/// ## Following => Unconfirmed        the wall clock stepped forward by more than STEP_MS_MAX
/// ## Unconfirmed => Following        it stepped back, or the step lasted CONFIRM_MS
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallClock {
    /// The accepted difference between wall and steady clock; `None` before the first reading.
    offset_ms: Option<i128>,
    unconfirmed: Option<UnconfirmedStep>,
}

/// An unconfirmed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnconfirmedStep {
    offset_ms: i128,
    since_steady_ms: u64,
}

impl WallClock {
    /// Creates a clock that accepts its first reading.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            offset_ms: None,
            unconfirmed: None,
        }
    }

    /// Returns the time for expiry decisions, in milliseconds since 1970, at most `wall_ms`.
    /// `steady_ms` never decreases, `wall_ms` may step; both must be read at the same moment.
    pub fn read(&mut self, steady_ms: u64, wall_ms: u64) -> u64 {
        let seen = i128::from(wall_ms) - i128::from(steady_ms);
        let followed = match self.offset_ms {
            Some(offset) if seen - offset > i128::from(STEP_MS_MAX) => {
                self.confirm(steady_ms, seen).unwrap_or(offset)
            }
            _ => seen,
        };
        if followed == seen {
            self.unconfirmed = None;
        }
        self.offset_ms = Some(followed);
        u64::try_from(followed + i128::from(steady_ms)).unwrap_or(0)
    }

    /// Returns true if the last reading showed an unconfirmed step.
    #[must_use]
    pub const fn is_doubted(&self) -> bool {
        self.unconfirmed.is_some()
    }

    /// Returns the offset after a step forward if the step is confirmed.
    fn confirm(&mut self, steady_ms: u64, seen_ms: i128) -> Option<i128> {
        let same =
            |step: &UnconfirmedStep| seen_ms.abs_diff(step.offset_ms) <= u128::from(STEP_MS_MAX);
        let step = *self
            .unconfirmed
            .as_ref()
            .filter(|it| same(it))
            .unwrap_or(&UnconfirmedStep {
                offset_ms: seen_ms,
                since_steady_ms: steady_ms,
            });
        self.unconfirmed = Some(step);
        let lasted_ms = steady_ms.saturating_sub(step.since_steady_ms);
        (lasted_ms >= CONFIRM_MS).then_some(seen_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;
    const START_MS: u64 = 1_000 * DAY_MS;

    #[test]
    fn small_corrections_are_followed_at_once() {
        let mut clock = WallClock::new();
        assert_eq!(clock.read(0, START_MS), START_MS);
        assert_eq!(
            clock.read(1_000, START_MS + 61_000),
            START_MS + 61_000,
            "one minute ahead"
        );
        assert_eq!(clock.read(2_000, START_MS + 2_000), START_MS + 2_000);
        assert!(!clock.is_doubted());
    }

    #[test]
    fn temporary_step_forward_changes_nothing() {
        let mut clock = WallClock::new();
        clock.read(0, START_MS);
        for steady_ms in (10_000..CONFIRM_MS).step_by(10_000) {
            let wall_ms = START_MS + 400 * DAY_MS + steady_ms;
            assert_eq!(clock.read(steady_ms, wall_ms), START_MS + steady_ms);
            assert!(clock.is_doubted());
        }
        let steady_ms = CONFIRM_MS + 5_000;
        assert_eq!(
            clock.read(steady_ms, START_MS + steady_ms),
            START_MS + steady_ms
        );
        assert!(!clock.is_doubted());
    }

    #[test]
    fn lasting_step_forward_is_followed() {
        let mut clock = WallClock::new();
        clock.read(0, START_MS);
        let stepped = |steady_ms: u64| START_MS + steady_ms + 30 * DAY_MS;
        assert_eq!(clock.read(1_000, stepped(1_000)), START_MS + 1_000);
        let before_ms = CONFIRM_MS + 999;
        let expected_ms = START_MS + before_ms;
        assert_eq!(clock.read(before_ms, stepped(before_ms)), expected_ms);
        let confirmed_ms = CONFIRM_MS + 1_000;
        let expected_ms = stepped(confirmed_ms);
        assert_eq!(clock.read(confirmed_ms, expected_ms), expected_ms);
        assert!(!clock.is_doubted());
    }

    #[test]
    fn step_back_is_followed_at_once() {
        let mut clock = WallClock::new();
        clock.read(0, START_MS);
        let back_ms = START_MS - 30 * DAY_MS;
        assert_eq!(clock.read(1_000, back_ms), back_ms);
        assert!(!clock.is_doubted());
    }

    #[test]
    fn second_step_restarts_the_confirmation() {
        let mut clock = WallClock::new();
        clock.read(0, START_MS);
        clock.read(1_000, START_MS + DAY_MS);
        let later_ms = CONFIRM_MS + 500;
        clock.read(later_ms, START_MS + 2 * DAY_MS + later_ms);
        let still_ms = later_ms + CONFIRM_MS - 1;
        let wall_ms = START_MS + 2 * DAY_MS + still_ms;
        assert_eq!(clock.read(still_ms, wall_ms), START_MS + still_ms);
        assert_eq!(clock.read(still_ms + 1, wall_ms + 1), wall_ms + 1);
    }
}

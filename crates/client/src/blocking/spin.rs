//! `Spin`: busy-waiting for a reply before sleeping.
//!
//! Waking a sleeping thread takes 20 µs or more when the peer runs on another processor; spinning
//! only costs the thread's own time. With one processor, spinning keeps the peer from running. The
//! spinner therefore adapts: consecutive misses disable it for a while.

use std::time::Duration;

/// Busy-waiting before sleeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spin {
    /// Spins for up to 50 µs on machines with several processors, as long as it pays off.
    #[default]
    Auto,
    /// Never spins.
    Off,
    /// Spins for up to this time, as long as it pays off.
    UpTo(Duration),
}

/// Consecutive misses after which spinning stops for a while.
const MISSES_MAX: u32 = 4;

/// Waits without spinning before it is tried again.
const SLEEPS: u32 = 512;

const AUTO: Duration = Duration::from_micros(50);

/// Decides how long to spin.
#[derive(Debug)]
pub(crate) struct Spinner {
    time: Duration,
    misses: u32,
    sleeps: u32,
}

impl Spinner {
    pub(crate) fn new(spin: Spin) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            time: match spin {
                Spin::Auto if processors > 1 => AUTO,
                Spin::Auto | Spin::Off => Duration::ZERO,
                Spin::UpTo(time) => time,
            },
            misses: 0,
            sleeps: 0,
        }
    }

    /// Returns how long to spin this time.
    pub(crate) fn time(&mut self) -> Duration {
        if self.sleeps > 0 {
            self.sleeps -= 1;
            return Duration::ZERO;
        }
        self.time
    }

    /// Counts a hit or a miss.
    pub(crate) fn learn(&mut self, has_hit: bool) {
        self.misses = if has_hit { 0 } else { self.misses + 1 };
        if self.misses >= MISSES_MAX {
            self.sleeps = SLEEPS;
            // After the pause, one more miss disables it again.
            self.misses = MISSES_MAX - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_stops_after_misses_and_is_tried_again() {
        let time = Duration::from_micros(5);
        let mut spinner = Spinner::new(Spin::UpTo(time));
        for _ in 0..MISSES_MAX {
            assert_eq!(spinner.time(), time);
            spinner.learn(false);
        }
        for _ in 0..SLEEPS {
            assert_eq!(spinner.time(), Duration::ZERO);
        }
        assert_eq!(spinner.time(), time);
        spinner.learn(false);
        assert_eq!(spinner.time(), Duration::ZERO);
    }

    #[test]
    fn spin_success_resets_the_miss_count() {
        let time = Duration::from_micros(5);
        let mut spinner = Spinner::new(Spin::UpTo(time));
        for _ in 0..100 {
            for has_hit in [false, false, false, true] {
                assert_eq!(spinner.time(), time);
                spinner.learn(has_hit);
            }
        }
    }
}

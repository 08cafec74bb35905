//! Whether to look at the socket again and again before sleeping on it.
//!
//! A sleeping thread is woken in 20 µs or more where the other end runs on another processor, and
//! looking costs nothing but that thread's own time. On one processor looking is a disaster: it
//! keeps the other end from running. So it adapts: misses in a row stop it for a while.

use std::time::Duration;

/// Looking before sleeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spin {
    /// For up to 50 µs where there is more than one processor, while that pays.
    #[default]
    Auto,
    /// Never.
    Off,
    /// For up to so long, while that pays.
    UpTo(Duration),
}

/// Looks that were in vain, in a row, before it is given up for a while.
const MISSES_MAX: u32 = 4;

/// Waits that are slept through before it is tried again.
const SLEEPS: u32 = 512;

const AUTO: Duration = Duration::from_micros(50);

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

    /// How long to look this time.
    pub(crate) fn time(&mut self) -> Duration {
        if self.sleeps > 0 {
            self.sleeps -= 1;
            return Duration::ZERO;
        }
        self.time
    }

    /// What came of looking.
    pub(crate) fn learn(&mut self, has_hit: bool) {
        self.misses = if has_hit { 0 } else { self.misses + 1 };
        if self.misses >= MISSES_MAX {
            self.sleeps = SLEEPS;
            // One more miss after the pause is enough to go on sleeping.
            self.misses = MISSES_MAX - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_in_vain_is_given_up_and_tried_again() {
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
    fn a_hit_forgets_the_misses() {
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

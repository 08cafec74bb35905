//! A clock that a test moves.

use std::sync::atomic::{AtomicU64, Ordering};

use platform::Clock;

/// Nanoseconds since it began, which was in November 2023.
#[derive(Default)]
pub(crate) struct ManualClock(pub(crate) AtomicU64);

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_ms(&self) -> u64 {
        1_700_000_000_000 + self.now_ns() / 1_000_000
    }
}

//! A clock that a test moves.

use std::sync::atomic::{AtomicU64, Ordering};

use platform::Clock;

/// A clock of nanoseconds since its start, which was in November 2023.
#[derive(Default)]
pub struct ManualClock(pub AtomicU64);

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance_ms(&self, ms: u64) {
        self.0.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_ms(&self) -> u64 {
        1_700_000_000_000 + self.now_ns() / 1_000_000
    }
}

//! The world as it is: the system's clocks and randomness.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use node::{Clock, Entropy, Ports};

/// The real clock and real randomness.
pub(super) fn real() -> Ports {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the port through which time enters"
    )]
    let start = Instant::now();
    Ports {
        clock: Arc::new(SystemClock { start }),
        entropy: Arc::new(SystemEntropy),
    }
}

struct SystemClock {
    start: Instant,
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        // 584 years.
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn unix_ms(&self) -> u64 {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the port through which time enters"
        )]
        let now = SystemTime::now();
        now.duration_since(UNIX_EPOCH).map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }
}

struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&self) -> u64 {
        fastrand::u64(..)
    }
}

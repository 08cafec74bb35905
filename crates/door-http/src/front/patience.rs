//! A deadline that moves with every request and seldom touches its timer.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A deadline that lies a fixed time after its last renewal.
pub(super) struct Patience {
    limit: Duration,
    until: Instant,
    /// The timer is not reset for every request. When it fires too early, it is reset to `until`.
    sleep: Pin<Box<Sleep>>,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            until: Instant::now() + limit,
            sleep: Box::pin(tokio::time::sleep(limit)),
        }
    }

    /// Moves the deadline to a fixed time after `now`.
    pub(super) fn renew(&mut self, now: Instant) {
        self.until = now + self.limit;
    }

    /// Completes at the deadline.
    pub(super) async fn over(&mut self) {
        loop {
            self.sleep.as_mut().await;
            if Instant::now() >= self.until {
                return;
            }
            self.sleep.as_mut().reset(self.until);
        }
    }
}

//! A deadline that moves with every message and seldom touches its timer.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A deadline that lies a fixed time after its last renewal.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    until: Instant,
    /// The timer is not reset for every message. When it fires too early, it is reset to `until`.
    sleep: Pin<Box<Sleep>>,
}

impl Patience {
    /// Starts a deadline that lies `limit` from now.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            until: Instant::now() + limit,
            sleep: Box::pin(tokio::time::sleep(limit)),
        }
    }

    /// Moves the deadline to a fixed time after `now`.
    pub fn renew(&mut self, now: Instant) {
        self.until = now + self.limit;
    }

    /// Ready at the deadline, and after it until it is renewed.
    pub fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            if Instant::now() >= self.until {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(self.until);
        }
    }

    /// Completes at the deadline.
    pub async fn over(&mut self) {
        poll_fn(|cx| self.poll_over(cx)).await;
    }
}

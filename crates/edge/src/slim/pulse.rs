//! Whether a client is still there: it is asked when nothing was heard of it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// See the module's documentation.
pub(super) struct Pulse {
    alarm: Pin<Box<Sleep>>,
    /// It was asked, and has not answered.
    is_asked: bool,
    /// Something was heard since the alarm rang last.
    is_heard: bool,
}

impl Pulse {
    /// Rings for the first time after `first`.
    pub(super) fn new(first: Duration) -> Self {
        Self {
            alarm: Box::pin(tokio::time::sleep(first)),
            is_asked: false,
            is_heard: false,
        }
    }

    /// It was heard, or takes what it is sent.
    pub(super) fn hear(&mut self) {
        self.is_heard = true;
    }

    /// It has answered.
    pub(super) fn answer(&mut self) {
        (self.is_asked, self.is_heard) = (false, true);
    }

    /// It was asked.
    pub(super) fn ask(&mut self) {
        self.is_asked = true;
    }

    /// Whether an answer is owed.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Ready when it is time to look at the client.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.as_mut().poll(cx)
    }

    /// Looks at it again after `interval`; whether anything was heard in the one before.
    pub(super) fn rest(&mut self, now: Instant, interval: Duration) -> bool {
        self.alarm.as_mut().reset(now + interval);
        std::mem::take(&mut self.is_heard)
    }
}

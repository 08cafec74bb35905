//! Keepalive of one client: it is pinged when it was silent.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The keepalive timer of one client.
pub(super) struct Keepalive {
    alarm: Pin<Box<Sleep>>,
    /// A ping was sent and not answered.
    is_asked: bool,
    /// The client was heard since the timer rang last.
    is_heard: bool,
}

impl Keepalive {
    /// Returns a timer that rings for the first time after `first`.
    pub(super) fn new(first: Duration) -> Self {
        Self {
            alarm: Box::pin(tokio::time::sleep(first)),
            is_asked: false,
            is_heard: false,
        }
    }

    /// Notes that the client sent data, or accepted some.
    pub(super) fn hear(&mut self) {
        self.is_heard = true;
    }

    /// Notes that the client answered a ping.
    pub(super) fn answer(&mut self) {
        (self.is_asked, self.is_heard) = (false, true);
    }

    /// Notes that a ping was sent.
    pub(super) fn ask(&mut self) {
        self.is_asked = true;
    }

    /// Returns whether a ping was not answered.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Returns ready when the client has to be checked.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.as_mut().poll(cx)
    }

    /// Sets the timer to `interval`; returns whether the client was heard in the last one.
    pub(super) fn rest(&mut self, now: Instant, interval: Duration) -> bool {
        self.alarm.as_mut().reset(now + interval);
        std::mem::take(&mut self.is_heard)
    }
}

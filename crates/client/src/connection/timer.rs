//! `Timer` and `Heartbeat`: the single timer of a connection's task, and its keepalive.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// The single timer of a connection's task.
pub(crate) struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// True if the timer will wake the current task.
    is_registered: bool,
}

impl Timer {
    /// Creates a timer that expires at `at`.
    pub(crate) fn new(at: Instant) -> Self {
        Self {
            sleep: Box::pin(sleep_until(at)),
            is_registered: false,
        }
    }

    /// Makes sure that the task is woken at `at` or earlier.
    pub(crate) fn arm(&mut self, at: Instant, cx: &mut Context<'_>) {
        if at < self.sleep.deadline() || self.sleep.is_elapsed() {
            self.sleep.as_mut().reset(at);
            self.is_registered = false;
        }
        if !self.is_registered {
            self.is_registered = true;
            if let Poll::Ready(()) = self.sleep.as_mut().poll(cx) {
                // The time has come already: run once more.
                cx.waker().wake_by_ref();
            }
        }
    }

    /// Sets a new time after the timer expired. It must be armed before the task rests.
    pub(crate) fn restart(&mut self, at: Instant) {
        self.sleep.as_mut().reset(at);
        self.is_registered = false;
    }

    /// Forgets the registered task, because another task owns the connection now.
    pub(crate) fn forget_task(&mut self) {
        self.is_registered = false;
    }

    /// True if the timer expired since it was last armed.
    pub(crate) fn is_over(&self) -> bool {
        self.sleep.is_elapsed()
    }
}

/// Decides when to send a PING to a silent peer, and when the connection is dead.
///
/// Time is counted in halves of the interval, so that sending and receiving need no clock.
pub(crate) struct Heartbeat {
    half: std::time::Duration,
    pub(crate) at: Instant,
    has_sent: bool,
    has_received: bool,
    unsent: u32,
    unheard: u32,
}

/// Action after half an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    Quiet,
    Ping,
    Dead,
}

/// Half intervals without any byte from the peer after which it is dead: 2.5 intervals.
const UNHEARD_MAX: u32 = 5;

impl Heartbeat {
    /// Creates a heartbeat. `interval_ms` 0 means no keepalive.
    pub(crate) fn new(interval_ms: u32, now: Instant) -> Self {
        let interval = match interval_ms {
            0 => u32::MAX,
            interval => interval,
        };
        let half = std::time::Duration::from_millis(u64::from(interval).div_ceil(2));
        Self {
            half,
            at: now + half,
            has_sent: false,
            has_received: false,
            unsent: 0,
            unheard: 0,
        }
    }

    pub(crate) fn sent(&mut self) {
        self.has_sent = true;
    }

    pub(crate) fn received(&mut self) {
        self.has_received = true;
    }

    /// Advances by half an interval.
    pub(crate) fn beat(&mut self, now: Instant) -> Beat {
        self.at = now + self.half;
        let count = |was: u32, happened: bool| if happened { 0 } else { was + 1 };
        self.unsent = count(self.unsent, std::mem::take(&mut self.has_sent));
        self.unheard = count(self.unheard, std::mem::take(&mut self.has_received));
        match (self.unheard, self.unsent) {
            (UNHEARD_MAX.., _) => Beat::Dead,
            (2.., _) | (_, 2..) => Beat::Ping,
            _ => Beat::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silent_peer_is_pinged_and_then_considered_dead() {
        let now = Instant::now();
        let mut heartbeat = Heartbeat::new(1000, now);
        let beats: Vec<_> = (0..5).map(|_| heartbeat.beat(now)).collect();
        assert_eq!(
            beats,
            [Beat::Quiet, Beat::Ping, Beat::Ping, Beat::Ping, Beat::Dead]
        );
        assert_eq!(heartbeat.at, now + std::time::Duration::from_millis(500));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_only_receives_gets_pings() {
        let now = Instant::now();
        let mut heartbeat = Heartbeat::new(1000, now);
        for _ in 0..100 {
            heartbeat.sent();
            if heartbeat.beat(now) == Beat::Ping {
                heartbeat.received();
            }
            heartbeat.sent();
            assert_ne!(heartbeat.beat(now), Beat::Dead);
            heartbeat.received();
        }
    }
}

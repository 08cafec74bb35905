//! What a client has been handed and has not finished: the calls it must answer, and the one-way
//! messages it has not returned credit for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use routing::{Call, Calls, Ticket};

use crate::peer::Peer;

/// A client above half of its window that has returned no credit for this long is stopped:
/// senders are not asked to wait for it any more.
const STALLED_AFTER_NS: u64 = 100_000_000;

/// Who asked: the peer and its own number for the call.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) peer: Arc<Peer>,
    pub(crate) tag: Ticket,
}

/// A sender's route that was told to pause.
pub(crate) struct Throttled {
    pub(crate) sender: std::sync::Weak<Peer>,
    pub(crate) route: u16,
    /// Set while the sender is told to pause.
    pub(crate) paused: Arc<AtomicBool>,
}

/// What became of a one-way message at a client's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// There is room.
    Room,
    /// There is room, but less than half of the window: ask the sender to pause.
    Pressed,
    /// No room.
    Full,
}

pub(crate) struct Lane {
    pub(crate) calls: Calls<Caller>,
    credit_messages: u32,
    credit_bytes: u64,
    outstanding_messages: u32,
    outstanding_bytes: u64,
    /// When credit last came back, or the window was last below half.
    progress_ns: u64,
    pub(crate) throttled: Vec<Throttled>,
    /// Whether the peer is on the node's list of peers to sweep.
    pub(crate) listed: bool,
}

impl Lane {
    pub(crate) fn new(credit_messages: u32, credit_bytes: u64) -> Self {
        Self {
            calls: Calls::default(),
            credit_messages,
            credit_bytes,
            outstanding_messages: 0,
            outstanding_bytes: 0,
            progress_ns: 0,
            throttled: Vec::new(),
            listed: false,
        }
    }

    /// Takes a one-way message of `size` bytes into the window.
    pub(crate) fn admit(&mut self, size: u64, now_ns: u64) -> Admission {
        let bytes = self.outstanding_bytes + size;
        let fits = bytes <= self.credit_bytes || self.outstanding_messages == 0;
        if self.outstanding_messages >= self.credit_messages || !fits {
            return Admission::Full;
        }
        if !self.is_pressed() {
            self.progress_ns = now_ns;
        }
        self.outstanding_messages += 1;
        self.outstanding_bytes = bytes;
        match self.is_pressed() && !self.is_stalled(now_ns) {
            true => Admission::Pressed,
            false => Admission::Room,
        }
    }

    /// Takes back what [`Lane::admit`] let in: it was not handed over after all.
    pub(crate) fn revoke(&mut self, size: u64) {
        self.outstanding_messages -= 1;
        self.outstanding_bytes -= size;
    }

    /// The client consumed one-way messages. Returns the senders to wake.
    pub(crate) fn credit(&mut self, messages: u32, bytes: u64, now_ns: u64) -> Vec<Throttled> {
        self.outstanding_messages = self.outstanding_messages.saturating_sub(messages);
        self.outstanding_bytes = self.outstanding_bytes.saturating_sub(bytes);
        self.progress_ns = now_ns;
        match self.is_drained() {
            true => std::mem::take(&mut self.throttled),
            false => Vec::new(),
        }
    }

    /// Notes a sender that was told to pause. Gives it back when the client has caught up meanwhile:
    /// no further credit may come that would wake it.
    pub(crate) fn throttle(&mut self, throttled: Throttled) -> Option<Throttled> {
        if self.is_drained() {
            return Some(throttled);
        }
        self.throttled.push(throttled);
        None
    }

    fn is_drained(&self) -> bool {
        self.outstanding_messages <= self.credit_messages / 4
            && self.outstanding_bytes <= self.credit_bytes / 4
    }

    /// The senders to wake because the client has stopped altogether.
    pub(crate) fn give_up(&mut self, now_ns: u64) -> Vec<Throttled> {
        match self.is_stalled(now_ns) {
            true => std::mem::take(&mut self.throttled),
            false => Vec::new(),
        }
    }

    /// Whether a sweep has something to look after.
    pub(crate) fn needs_sweep(&self) -> bool {
        !self.calls.is_empty() || !self.throttled.is_empty()
    }

    /// Adds a call.
    pub(crate) fn call(&mut self, caller: Caller, deadline_ns: u64) -> Ticket {
        self.calls.insert(Call {
            caller,
            deadline_ns,
        })
    }

    fn is_pressed(&self) -> bool {
        self.outstanding_messages > self.credit_messages / 2
            || self.outstanding_bytes > self.credit_bytes / 2
    }

    fn is_stalled(&self, now_ns: u64) -> bool {
        self.is_pressed() && now_ns.saturating_sub(self.progress_ns) > STALLED_AFTER_NS
    }
}

impl Throttled {
    /// Tells the sender to go on. Returns the peer to flush.
    pub(crate) fn release(self) -> Option<Arc<Peer>> {
        let sender = self.sender.upgrade();
        if let Some(sender) = &sender {
            sender.outlet.push(crate::Outgoing::Flow {
                route: self.route,
                full: false,
            });
        }
        // Only now: a pause that is asked for from here on reaches the sender after this.
        self.paused.store(false, Ordering::Relaxed);
        sender
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_fills_and_credit_opens_it() {
        let mut lane = Lane::new(4, 1000);
        assert_eq!(lane.admit(10, 0), Admission::Room);
        assert_eq!(lane.admit(10, 0), Admission::Room);
        assert_eq!(lane.admit(10, 0), Admission::Pressed);
        assert_eq!(lane.admit(10, 0), Admission::Pressed);
        assert_eq!(lane.admit(10, 0), Admission::Full);
        lane.credit(4, 40, 1);
        assert_eq!(lane.admit(10, 2), Admission::Room);
    }

    #[test]
    fn a_message_larger_than_the_window_passes_alone() {
        let mut lane = Lane::new(4, 1000);
        assert_eq!(lane.admit(5000, 0), Admission::Pressed);
        assert_eq!(lane.admit(1, 0), Admission::Full);
        lane.credit(1, 5000, 1);
        assert_eq!(lane.admit(1, 1), Admission::Room);
    }

    #[test]
    fn nobody_waits_for_a_client_that_has_stopped() {
        let mut lane = Lane::new(8, 1000);
        for _ in 0..5 {
            lane.admit(1, 0);
        }
        assert_eq!(lane.admit(1, STALLED_AFTER_NS), Admission::Pressed);
        assert_eq!(lane.admit(1, STALLED_AFTER_NS + 1), Admission::Room);
        assert_eq!(lane.admit(1, STALLED_AFTER_NS + 1), Admission::Room);
        assert_eq!(lane.admit(1, STALLED_AFTER_NS + 1), Admission::Full);
    }
}

//! The flow-control window of a client: the calls it must answer, and the one-way messages that it
//! has not returned credit for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use quota_service::InFlight;
use routing::{Call, Calls, Ticket};

use crate::mailboxes::Slot;
use crate::outlet::Message;
use crate::peer::Peer;
use crate::throttle::{Pressure, Throttle, ThrottleId};

/// Time without returned credit after which a client that senders wait for counts as stopped, in
/// nanoseconds. Senders do not wait for a stopped client until it returns credit.
///
/// A sender may be held up for about 350 ms, and the sweep that finds a stopped client runs every
/// 100 ms: this is the largest value that fits. It should be as large as possible, because a client
/// that is merely slow loses copies afterwards: a process that has used up its CPU quota is not
/// scheduled for most of a 100 ms period (the kernel's default), and this value outlasts two of
/// them.
const STOPPED_AFTER_NS: u64 = 250_000_000;

/// The caller of a call.
#[derive(Clone)]
pub(crate) enum Caller {
    /// A client, with its tag of the call.
    Peer {
        peer: Arc<Peer>,
        tag: Ticket,
        /// Counts the call towards a limit on calls in flight until it ends.
        _in_flight: Option<Arc<InFlight>>,
    },
    /// A mailbox, with the message to acknowledge.
    Mailbox { slot: Arc<Slot>, offset: u64 },
}

/// The routes that a client pauses. To be dropped while its lane is not locked.
pub(crate) type Pressures = BTreeMap<ThrottleId, Pressure>;

/// The decision of a client's window about a one-way message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// There is room.
    Room,
    /// There is room, but less than half of the window: the route must be paused. Repeated until it
    /// is.
    Pressed,
    /// There is no room.
    Full,
}

pub(crate) struct Lane {
    pub(crate) calls: Calls<Caller>,
    credit_messages: u32,
    credit_bytes: u64,
    outstanding_messages: u32,
    outstanding_bytes: u64,
    /// The last time at which credit was returned, or a message arrived while no sender waited.
    progress_ns: u64,
    /// True if senders waited in vain, and no credit was returned since.
    has_stopped: bool,
    /// The routes that wait for the client.
    pressures: Pressures,
    /// True if the peer is on the node's list of peers to sweep.
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
            has_stopped: false,
            pressures: Pressures::new(),
            listed: false,
        }
    }

    /// Admits a one-way message of `size` bytes from a route to the window.
    pub(crate) fn admit(&mut self, size: u64, route: ThrottleId, now_ns: u64) -> Admission {
        let bytes = self.outstanding_bytes + size;
        let fits = bytes <= self.credit_bytes || self.outstanding_messages == 0;
        if self.outstanding_messages >= self.credit_messages || !fits {
            return Admission::Full;
        }
        if !self.is_pressing() && !self.is_pressed() {
            self.progress_ns = now_ns;
        }
        self.outstanding_messages += 1;
        self.outstanding_bytes = bytes;
        let is_new = self.is_pressed() && !self.pressures.contains_key(&route);
        match is_new && !self.check_stopped(now_ns) {
            true => Admission::Pressed,
            false => Admission::Room,
        }
    }

    /// Admits one-way messages like [`Lane::admit`], in order. Returns those that have room, and whether
    /// the route must be paused.
    pub(crate) fn admit_all<'m, 'a>(
        &mut self,
        messages: &'m [Message<'a>],
        route: ThrottleId,
        now_ns: u64,
    ) -> (Cow<'m, [Message<'a>]>, bool) {
        let mut is_pressed = false;
        let mut admit = |message: &Message<'_>| {
            let admission = self.admit(message.size(), route, now_ns);
            is_pressed |= admission == Admission::Pressed;
            admission != Admission::Full
        };
        let admitted = match messages.iter().position(|message| !admit(message)) {
            None => Cow::Borrowed(messages),
            Some(first_full) => {
                let (mut admitted, rest) =
                    (messages[..first_full].to_vec(), &messages[first_full..]);
                // A smaller message may still fit.
                let fitting = rest[1..].iter().copied().filter(|message| admit(message));
                admitted.extend(fitting);
                Cow::Owned(admitted)
            }
        };
        (admitted, is_pressed)
    }

    /// Revokes [`Lane::admit`] for a message that was not delivered.
    pub(crate) fn revoke(&mut self, size: u64) {
        self.outstanding_messages -= 1;
        self.outstanding_bytes -= size;
    }

    /// Adds returned credit. Returns the pressures to release.
    #[must_use]
    pub(crate) fn credit(&mut self, messages: u32, bytes: u64, now_ns: u64) -> Pressures {
        self.outstanding_messages = self.outstanding_messages.saturating_sub(messages);
        self.outstanding_bytes = self.outstanding_bytes.saturating_sub(bytes);
        self.progress_ns = now_ns;
        self.has_stopped = false;
        match self.is_drained() {
            true => self.release_all(),
            false => Pressures::new(),
        }
    }

    /// Pauses a route, unless the client has caught up meanwhile: then no further credit might
    /// arrive that would release it.
    pub(crate) fn press(&mut self, route: &Arc<Throttle>, dirty: &mut Vec<Arc<Peer>>) {
        if !self.is_drained() {
            let pressures = self.pressures.entry(route.id);
            pressures.or_insert_with(|| route.press(dirty));
        }
    }

    fn is_drained(&self) -> bool {
        self.outstanding_messages <= self.credit_messages / 4
            && self.outstanding_bytes <= self.credit_bytes / 4
    }

    /// Returns whether any sender waits for the client.
    pub(crate) fn is_pressing(&self) -> bool {
        !self.pressures.is_empty()
    }

    /// Releases all routes.
    #[must_use]
    pub(crate) fn release_all(&mut self) -> Pressures {
        std::mem::take(&mut self.pressures)
    }

    /// Releases the routes to a name that the client no longer subscribes to.
    #[must_use]
    pub(crate) fn release_routes_to(&mut self, base: &str) -> Pressures {
        let is_gone = |_: &ThrottleId, pressure: &mut Pressure| pressure.is_towards(base);
        self.pressures.extract_if(.., is_gone).collect()
    }

    /// Releases all routes if the client has stopped.
    #[must_use]
    pub(crate) fn release_if_stopped(&mut self, now_ns: u64) -> Pressures {
        match self.is_pressing() && self.check_stopped(now_ns) {
            true => self.release_all(),
            false => Pressures::new(),
        }
    }

    /// Returns whether the sweep must look at the peer.
    pub(crate) fn needs_sweep(&self) -> bool {
        !self.calls.is_empty() || self.is_pressing()
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

    /// Returns whether the client has stopped.
    fn check_stopped(&mut self, now_ns: u64) -> bool {
        self.has_stopped |= now_ns.saturating_sub(self.progress_ns) > STOPPED_AFTER_NS;
        self.has_stopped
    }
}

#[cfg(test)]
mod tests;

//! What a client has been handed and has not finished: the calls it must answer, and the one-way
//! messages it has not returned credit for.

use std::collections::BTreeMap;
use std::sync::Arc;

use routing::{Call, Calls, Ticket};

use crate::peer::Peer;
use crate::quotas::InFlight;
use crate::store::Slot;
use crate::throttle::{Pressure, Throttle, ThrottleId};

/// A client that others wait for and that has returned no credit for this long has stopped: nobody
/// waits for it until it returns some.
///
/// A sender may be held up for about 350 ms, and the sweep that finds a stopped client runs every
/// 100 ms: this is the most that fits. It should be as long as it can be, for whoever is merely slow
/// loses copies behind it: a process that has used up its share of a busy machine is not scheduled
/// for most of a 100 ms period (the kernel's default for CPU quotas), and this outlasts two of them.
const STOPPED_AFTER_NS: u64 = 250_000_000;

/// Who asked.
#[derive(Clone)]
pub(crate) enum Caller {
    /// A client, and its own number for the call.
    Peer {
        peer: Arc<Peer>,
        tag: Ticket,
        /// Counts the call as one of the client's, where a limit does, until it has ended.
        _in_flight: Option<Arc<InFlight>>,
    },
    /// A mailbox, and the message that is to be acknowledged.
    Mailbox { slot: Arc<Slot>, offset: u64 },
}

/// What a client presses. To be dropped when its lane is not locked.
pub(crate) type Pressures = BTreeMap<ThrottleId, Pressure>;

/// What became of a one-way message at a client's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// There is room.
    Room,
    /// There is room, but less than half of the window: the route is to be pressed. Said until it is.
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
    /// When credit last came back, or a message came for which nobody had to wait.
    progress_ns: u64,
    /// Others waited for the client in vain, and it has returned no credit since.
    has_stopped: bool,
    /// The routes that wait for the client.
    pressures: Pressures,
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
            has_stopped: false,
            pressures: Pressures::new(),
            listed: false,
        }
    }

    /// Takes a one-way message of `size` bytes, which came by that route, into the window.
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
        match is_new && !self.judge(now_ns) {
            true => Admission::Pressed,
            false => Admission::Room,
        }
    }

    /// Takes back what [`Lane::admit`] let in: it was not handed over after all.
    pub(crate) fn revoke(&mut self, size: u64) {
        self.outstanding_messages -= 1;
        self.outstanding_bytes -= size;
    }

    /// The client consumed one-way messages. Returns what it lets go of.
    #[must_use]
    pub(crate) fn credit(&mut self, messages: u32, bytes: u64, now_ns: u64) -> Pressures {
        self.outstanding_messages = self.outstanding_messages.saturating_sub(messages);
        self.outstanding_bytes = self.outstanding_bytes.saturating_sub(bytes);
        self.progress_ns = now_ns;
        self.has_stopped = false;
        match self.is_drained() {
            true => self.let_go(),
            false => Pressures::new(),
        }
    }

    /// Presses a route, unless the client has caught up meanwhile: no further credit may come that
    /// would let go.
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

    /// Whether anybody waits for the client.
    pub(crate) fn is_pressing(&self) -> bool {
        !self.pressures.is_empty()
    }

    /// Lets go of everything.
    #[must_use]
    pub(crate) fn let_go(&mut self) -> Pressures {
        std::mem::take(&mut self.pressures)
    }

    /// Lets go of the routes to a name that the client has nothing to do with any more.
    #[must_use]
    pub(crate) fn let_go_of(&mut self, base: &str) -> Pressures {
        let is_gone = |_: &ThrottleId, pressure: &mut Pressure| pressure.is_towards(base);
        self.pressures.extract_if(.., is_gone).collect()
    }

    /// Lets go of everything if the client has stopped.
    #[must_use]
    pub(crate) fn give_up(&mut self, now_ns: u64) -> Pressures {
        match self.is_pressing() && self.judge(now_ns) {
            true => self.let_go(),
            false => Pressures::new(),
        }
    }

    /// Whether a sweep has something to look after.
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

    /// Whether the client, which others wait for, has stopped.
    fn judge(&mut self, now_ns: u64) -> bool {
        self.has_stopped |= now_ns.saturating_sub(self.progress_ns) > STOPPED_AFTER_NS;
        self.has_stopped
    }
}

#[cfg(test)]
mod tests;

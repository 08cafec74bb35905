//! Backpressure on one route of a sender: the route pauses while anybody presses it.
//!
//! Many subscribers may press one route at once, and each lets go when it has its own reason to: the
//! route goes on with the last of them. A [`Pressure`] lets go by being dropped, so exactly once
//! whatever the reason. Invariant: *the newest FLOW of a route says whether somebody presses it*,
//! because a FLOW is queued under the same lock that counts the pressures.
//!
//! It does not know windows: when to press and when to let go is the lane's to say.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use routing::ConnectionId;

use crate::peer::Peer;
use crate::ports::{Outgoing, Pushed};

/// Names one binding of one route of one sender; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThrottleId {
    pub(crate) sender: ConnectionId,
    /// Counts the bindings of the sender.
    pub(crate) binding: u64,
}

/// A binding of a route, as those who press it know it.
pub(crate) struct Throttle {
    pub(crate) id: ThrottleId,
    sender: Weak<Peer>,
    route: u16,
    /// `org/namespace/agent` that the route leads to.
    base: Arc<str>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pressures: u32,
    /// The route was bound anew: its FLOWs are those of the new binding.
    has_ended: bool,
}

/// One subscriber's part in a pause. Dropping it lets go; the last one to do so tells the sender,
/// with a write to its connection: not under the lock of a lane.
pub(crate) struct Pressure(Arc<Throttle>);

impl Throttle {
    pub(crate) fn new(id: ThrottleId, sender: &Arc<Peer>, route: u16, base: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            id,
            sender: Arc::downgrade(sender),
            route,
            base,
            state: Mutex::default(),
        })
    }

    /// Presses on behalf of one subscriber, in the sender's own turn.
    pub(crate) fn press(self: &Arc<Self>, dirty: &mut Vec<Arc<Peer>>) -> Pressure {
        let mut state = self.state.lock();
        state.pressures += 1;
        if state.pressures == 1 {
            self.tell(true, dirty);
        }
        Pressure(self.clone())
    }

    /// The route is bound anew, in the sender's own turn: whoever still presses the old binding has
    /// no say in the new one, which begins open.
    pub(crate) fn end(&self, dirty: &mut Vec<Arc<Peer>>) {
        let mut state = self.state.lock();
        state.has_ended = true;
        if state.pressures > 0 {
            self.tell(false, dirty);
        }
    }

    /// Returns the sender when the caller has to flush it.
    fn ease(&self) -> Option<Arc<Peer>> {
        let mut dirty = Vec::new();
        let mut state = self.state.lock();
        state.pressures -= 1;
        if state.pressures == 0 && !state.has_ended {
            self.tell(false, &mut dirty);
        }
        dirty.pop()
    }

    /// Under the lock of the state, so that FLOWs are queued in the order of what they say.
    fn tell(&self, full: bool, dirty: &mut Vec<Arc<Peer>>) {
        let Some(sender) = self.sender.upgrade() else {
            return;
        };
        let route = self.route;
        if sender.outlet.push(Outgoing::Flow { route, full }) == Pushed::First {
            dirty.push(sender);
        }
    }
}

impl Pressure {
    /// Whether the route leads to that `org/namespace/agent`.
    pub(crate) fn is_towards(&self, base: &str) -> bool {
        *self.0.base == *base
    }
}

impl Drop for Pressure {
    fn drop(&mut self) {
        if let Some(sender) = self.0.ease() {
            sender.outlet.flush();
        }
    }
}

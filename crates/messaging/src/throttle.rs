//! Backpressure on one route of a sender: the route is paused while any subscriber presses it.
//!
//! Several subscribers may press a route at the same time. Each releases it for its own reasons,
//! and the route resumes with the last release. A [`Pressure`] is released by dropping it, and so
//! exactly once. Invariant: *the newest FLOW frame of a route tells whether it is pressed*, because
//! FLOW frames are queued under the lock that counts the pressures.
//!
//! This module does not know windows: the lane decides when to press and when to release.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use routing::ConnectionId;

use crate::outlet::{Outgoing, Pushed};
use crate::peer::Peer;

/// Identifies one binding of one route of one sender; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThrottleId {
    pub(crate) sender: ConnectionId,
    /// The number of the sender's binding.
    pub(crate) binding: u64,
}

/// A binding of a route, as seen by the subscribers that press it.
pub(crate) struct Throttle {
    pub(crate) id: ThrottleId,
    sender: Weak<Peer>,
    route: u16,
    /// The `org/namespace/agent` that the route leads to.
    base: Arc<str>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pressures: u32,
    /// True once the route was bound again: FLOW frames belong to the new binding.
    has_ended: bool,
}

/// One subscriber's part in a pause. Dropping it releases the route. The last release writes to the
/// sender's connection, so it must not be dropped under the lock of a lane.
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

    /// Ends the binding because the route is bound again, in the sender's own turn. Pressures on
    /// the old binding do not affect the new one, which starts unpaused.
    pub(crate) fn end(&self, dirty: &mut Vec<Arc<Peer>>) {
        let mut state = self.state.lock();
        state.has_ended = true;
        if state.pressures > 0 {
            self.tell(false, dirty);
        }
    }

    /// Removes one pressure. Returns the sender if it must be flushed.
    fn ease(&self) -> Option<Arc<Peer>> {
        let mut dirty = Vec::new();
        let mut state = self.state.lock();
        state.pressures -= 1;
        if state.pressures == 0 && !state.has_ended {
            self.tell(false, &mut dirty);
        }
        dirty.pop()
    }

    /// Queues a FLOW frame. Called under the lock of the state, so that frames are queued in the
    /// right order.
    fn tell(&self, full: bool, dirty: &mut Vec<Arc<Peer>>) {
        let Some(sender) = self.sender.upgrade() else {
            return;
        };
        let route = self.route;
        if sender.push_unflushed(Outgoing::Flow { route, full }) == Pushed::First {
            dirty.push(sender);
        }
    }
}

impl Pressure {
    /// Returns whether the route leads to that `org/namespace/agent`.
    pub(crate) fn is_towards(&self, base: &str) -> bool {
        *self.0.base == *base
    }
}

impl Drop for Pressure {
    fn drop(&mut self) {
        if let Some(sender) = self.0.ease() {
            sender.flush();
        }
    }
}

//! Routes of a client: names that it sends messages and calls to.

use std::sync::Arc;

use model::{Name, SYSTEM_ORG};
use routing::Target;

use crate::messaging::Messaging;
use crate::throttle::{Throttle, ThrottleId};
use crate::turn::Turn;

/// The delivery mode of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// To one subscriber.
    Any,
    /// To every subscriber.
    All,
}

/// A route that a client bound to a name. It has to be released, with [`Turn::release`] or, after the
/// connection, with [`Messaging::release_routes`].
#[must_use = "release it, so that its name can be forgotten"]
pub struct Route {
    pub(crate) name: Name,
    pub(crate) target: Target,
    pub(crate) cast: Cast,
    pub(crate) method: Arc<str>,
    pub(crate) throttle: Arc<Throttle>,
}

impl Route {
    /// Returns the name that the route leads to.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns whether the route leads to an agent of the node itself.
    pub(crate) fn is_to_node(&self) -> bool {
        self.name.org() == SYSTEM_ORG
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Route({}, {:?}, {})", self.name, self.cast, self.method)
    }
}

impl Turn<'_> {
    /// Binds a route to a name. `number` is the client's number for it, which pauses of the route
    /// carry ([`Outgoing::Flow`](crate::Outgoing::Flow)).
    pub fn bind(&mut self, number: u16, name: Name, cast: Cast, method: &str) -> Route {
        self.table = None;
        let mut table = self.messaging.router.table.write();
        let target = table.target(&name);
        self.local.bindings += 1;
        let id = ThrottleId {
            sender: self.peer.id,
            binding: self.local.bindings,
        };
        let base = table.base(&target).clone();
        Route {
            name,
            target,
            cast,
            method: method.into(),
            throttle: Throttle::new(id, self.peer, number, base),
        }
    }

    /// Releases a route whose number the client binds again.
    pub fn release(&mut self, route: Route) {
        self.table = None;
        self.messaging.router.table.write().release(route.target);
        route.throttle.end(&mut self.local.dirty);
    }
}

impl Messaging {
    /// Releases the routes of a connection that has ended.
    pub fn release_routes(&self, routes: impl Iterator<Item = Route>) {
        let mut table = self.router.table.write();
        for route in routes {
            table.release(route.target);
        }
    }
}

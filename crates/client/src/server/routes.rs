//! `RouteTable`: receivers by the peer's route numbers.

use std::collections::HashMap;
use std::sync::Arc;

use super::handlers::Runner;
use crate::Fault;
use crate::agents::envelope_queue::EnvelopeQueue;
use crate::connection::binding::Binding;

/// Binding and receiver of a route.
pub(crate) struct Route {
    pub(crate) binding: Arc<Binding>,
    pub(crate) receiver: Receiver,
}

/// Receiver of the messages on a route.
pub(crate) enum Receiver {
    /// Handler of a server.
    Handler(Box<dyn Runner>),
    /// Queue of a subscription.
    Queue(Arc<EnvelopeQueue>),
    /// No receiver: every message is answered with this fault.
    None(Fault),
}

/// Routes by number. Dense numbers are in an array, others in a map; a peer that skips numbers
/// makes lookups slower but uses no extra memory.
#[derive(Default)]
pub(crate) struct RouteTable {
    dense: Vec<Route>,
    sparse: HashMap<u16, Route>,
}

impl RouteTable {
    pub(crate) fn insert(&mut self, number: u16, route: Route) {
        self.sparse.remove(&number);
        let index = usize::from(number);
        if index == self.dense.len() + 1 {
            self.dense.push(route);
        } else if let Some(slot) = self.dense.get_mut(index.wrapping_sub(1)) {
            *slot = route;
        } else {
            self.sparse.insert(number, route);
        }
    }

    pub(crate) fn get_mut(&mut self, number: u16) -> Option<&mut Route> {
        match self.dense.get_mut(usize::from(number).wrapping_sub(1)) {
            None => self.sparse.get_mut(&number),
            route => route,
        }
    }
}

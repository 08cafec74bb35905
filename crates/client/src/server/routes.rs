//! What the peer's route numbers mean here.

use std::collections::HashMap;
use std::sync::Arc;

use super::handlers::Runner;
use crate::Fault;
use crate::binding::Binding;
use crate::mailbox::Mailbox;

/// Where messages on a route go.
pub(crate) struct Route {
    pub(crate) binding: Arc<Binding>,
    pub(crate) receiver: Receiver,
}

pub(crate) enum Receiver {
    /// A function of a server.
    Handler(Box<dyn Runner>),
    /// A subscription.
    Mailbox(Arc<Mailbox>),
    /// Nobody: every use is answered with this.
    Nobody(Fault),
}

/// Routes by number. Numbers that follow each other lie in an array; a peer that skips some costs
/// itself speed and us no memory.
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

//! Quotas on the operations of connections.
//!
//! A denied operation is not carried out at all. A charge by a `sync` limit is answered when it is
//! durable: the answer waits with the connection's other answers that wait for the disk, and a call,
//! which another client answers, is [held](crate::held_call) until then. A message without an answer
//! does not wait.

use std::sync::Arc;

use platform::Durable;
use quota::{Cost, Unit};
use quota_service::{ChargeReceipt, HaltNotice, InFlight, Throttled};

use crate::connection::Connection;
use crate::route::Route;
use crate::turn::Turn;

impl Turn<'_> {
    /// Checks whether the client may perform an operation with these costs, and charges it. Returns
    /// what must be on disk before the operation is answered. Without a limit on any of the costs,
    /// this costs one atomic read.
    fn admit(&mut self, costs: &[Cost]) -> Result<Option<Durable>, Throttled> {
        let quotas = self.messaging.quotas();
        let is_counted = quotas.is_at_doors() && costs.iter().any(|(_, count)| *count > 0);
        if !is_counted {
            return Ok(None);
        }
        // Locks of `sync` limits come before the table's lock.
        self.table = None;
        self.peer.charged.admit(quotas, costs)
    }

    /// Checks whether the client may append bytes to a stream, a conversation or a topic, and charges
    /// them. Returns what must be on disk before the append is acknowledged.
    pub fn admit_append(&mut self, bytes: u64) -> Result<Option<Durable>, Throttled> {
        self.admit(&[(Unit::APPENDED_BYTES, bytes)])
    }

    /// Checks whether the client may send a message on a route. A message to the node itself costs
    /// nothing and is never refused: views and administration must work for a client that is over
    /// its limit.
    pub(crate) fn admit_send(&mut self, route: &Route) -> Result<Option<Durable>, Throttled> {
        match self.messaging.quotas().is_at_doors() && !route.is_to_node() {
            true => self.admit(&[(Unit::SENDS, 1)]),
            false => Ok(None),
        }
    }

    /// Like [`Turn::admit_send`], for a call, which is counted as in flight until it ends.
    pub(crate) fn admit_call(
        &mut self,
        route: &Route,
    ) -> Result<(Option<Arc<InFlight>>, Option<Durable>), Throttled> {
        let quotas = self.messaging.quotas();
        if !quotas.is_at_doors() || route.is_to_node() {
            return Ok((None, None));
        }
        self.table = None;
        self.peer.charged.admit_call(quotas)
    }
}

impl Connection {
    /// Returns the name that the client is charged and halted under.
    pub fn charged_principal(&self) -> &str {
        self.peer.charged.principal().subject()
    }

    /// Returns the halt of the client, if any.
    pub fn halted(&self) -> Option<HaltNotice> {
        let quotas = self.messaging.quotas();
        quotas.halt_of(self.peer.charged.principal())
    }

    /// Charges bytes that the client appends. If the limit has too little left but refills by
    /// itself, the bytes are charged anyway and the client must pause. Fails if the client is
    /// halted, or if the spent credit does not refill.
    pub fn charge_bytes(&self, bytes: u64) -> Result<ChargeReceipt, Throttled> {
        let quotas = self.messaging.quotas();
        let costs = [(Unit::APPENDED_BYTES, bytes)];
        self.peer.charged.charge(quotas, &costs)
    }

    /// Like [`Connection::charge_bytes`], for messages that the client sends.
    pub fn charge_sends(&self, count: u64) -> Result<ChargeReceipt, Throttled> {
        let quotas = self.messaging.quotas();
        self.peer.charged.charge(quotas, &[(Unit::SENDS, count)])
    }
}

#[cfg(test)]
mod listener_charges;

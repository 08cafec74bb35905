//! The exchange of messages: the subscriptions, and the copies for receivers.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use messaging::{AgentView, Names, SubscriberView};
use parking_lot::{Mutex, RwLock};
use platform::{Counter, Counters, Span};
use slim::{Agent, Key, Missed, Name, Random, Routed, SubscribeError, Table, Unknown};

use super::outlet::{Put, SlimOutlet};
use super::round::Round;

/// The name table and the messages of one node's SLIM clients.
pub struct Exchange {
    table: RwLock<Table<Arc<SlimOutlet>>>,
    /// Counts of messages without a subscriber.
    missed: Mutex<Missed>,
    /// Random bytes for the keys of links.
    pub(super) random: Random,
}

/// The protocol of these names, as `telpher agents` shows it.
const PROTOCOL: &str = "slim";

/// The fan-out of a message for one receiver; with any other fan-out it is for all.
const ONE: u32 = 1;

impl Default for Exchange {
    fn default() -> Self {
        Self {
            table: RwLock::default(),
            missed: Mutex::default(),
            random: Random::new(),
        }
    }
}

impl Exchange {
    pub(super) fn subscribe(
        &self,
        name: &Name<'_>,
        connection: u64,
        id: u64,
        outlet: &Arc<SlimOutlet>,
        count_max: usize,
    ) -> Result<(), SubscribeError> {
        self.table
            .write()
            .subscribe(name, connection, id, outlet, count_max)
    }

    pub(super) fn unsubscribe(&self, key: Key, connection: u64, id: u64) -> Result<(), Unknown> {
        self.table.write().unsubscribe(key, connection, id)
    }

    /// Removes the subscriptions of a client that has disconnected.
    pub(super) fn remove(&self, connection: u64) {
        self.table.write().remove(connection);
    }

    /// Forwards the message that [`Forward::prepare`] was given. Receivers for which the sender
    /// should pause are added to `pressing`.
    pub(super) fn publish(
        &self,
        routed: &Routed<'_>,
        tail: &Bytes,
        sender: u64,
        round: &mut Round,
        pressing: &mut Vec<Arc<SlimOutlet>>,
        counters: &Counters,
    ) -> Fanout {
        let header = &routed.header;
        let key = header.destination.encoded.key();
        let mut delivery = Delivery {
            tail,
            round,
            pressing,
            delivered: 0,
            dropped: 0,
        };
        match header.fanout {
            ONE => {
                let table = self.table.read();
                // Full receivers are skipped. If all are full, the message counts as dropped once.
                let taken = table
                    .any(&key, sender)
                    .any(|outlet| delivery.hand_over(outlet));
                delivery.dropped = u32::from(!taken && delivery.dropped > 0);
            }
            _ => {
                let mut receivers = std::mem::take(&mut delivery.round.receivers);
                receivers.extend(self.table.read().all(&key, sender).cloned());
                for outlet in receivers.drain(..) {
                    delivery.hand_over(&outlet);
                }
                delivery.round.receivers = receivers;
            }
        }
        let (delivered, dropped) = (delivery.delivered, delivery.dropped);
        counters.count(Counter::Sends);
        counters.add_to(Counter::Bytes, tail.len() as u64);
        counters.add_to(Counter::Delivered, delivered.into());
        counters.add_to(Counter::Dropped, dropped.into());
        if delivered + dropped == 0 {
            counters.count(Counter::Undeliverable);
            self.missed.lock().count(&header.destination);
            tracing::debug!(name = %header.destination, "no subscriber");
        }
        Fanout { delivered, dropped }
    }
}

/// The copies of a forwarded message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fanout {
    delivered: u32,
    /// Copies for which a receiver had no room.
    dropped: u32,
}

impl Fanout {
    /// Adds the outcome to a span.
    pub(super) fn describe(self, span: &mut Span) {
        let Self { delivered, dropped } = self;
        span.set_number("telpher.delivered", delivered);
        match (delivered, dropped) {
            (_, 1..) => span.fail("a receiver has no room"),
            (0, 0) => span.fail("no subscriber"),
            _ => {}
        }
    }
}

/// The state of forwarding one message.
struct Delivery<'a> {
    tail: &'a Bytes,
    round: &'a mut Round,
    pressing: &'a mut Vec<Arc<SlimOutlet>>,
    delivered: u32,
    dropped: u32,
}

impl Delivery<'_> {
    fn hand_over(&mut self, outlet: &Arc<SlimOutlet>) -> bool {
        let is_queued = self.put(outlet);
        outlet.count(is_queued);
        match is_queued {
            true => self.delivered += 1,
            false => self.dropped += 1,
        }
        is_queued
    }

    fn put(&mut self, outlet: &Arc<SlimOutlet>) -> bool {
        // A receiver without room costs no signature.
        let Some(link) = outlet.link().filter(|_| outlet.has_room(self.tail.len())) else {
            return false;
        };
        let head = self.round.forward.head(link);
        if !outlet.takes(head.len() + self.tail.len()) {
            return false;
        }
        match outlet.put(head, self.tail) {
            Put::First => self.round.dirty.push(outlet.clone()),
            Put::Behind => {}
            Put::Full => return false,
        }
        let is_known = |other: &Arc<SlimOutlet>| Arc::ptr_eq(other, outlet);
        if outlet.is_half_full() && !self.pressing.iter().any(is_known) {
            self.pressing.push(outlet.clone());
        }
        true
    }
}

/// Descriptions of this listener's names. Forwarded copies are counted per connection.
impl Names for Exchange {
    fn agents(&self) -> Vec<AgentView> {
        let named = |(prefix, name, count): (_, &str, _)| (prefix, (name.to_owned(), count));
        let mut missed: HashMap<_, _> = self.missed.lock().iter().map(named).collect();
        let table = self.table.read();
        let view = |agent: Agent<'_, Arc<SlimOutlet>>| AgentView {
            name: agent.name.to_owned(),
            protocol: PROTOCOL,
            undeliverable: missed.remove(&agent.prefix).map_or(0, |(_, count)| count),
            description: None,
            subscribers: agent.instances.into_iter().map(subscriber).collect(),
        };
        let mut agents: Vec<_> = table.agents().map(view).collect();
        agents.extend(missed.into_values().map(|(name, undeliverable)| AgentView {
            name,
            protocol: PROTOCOL,
            undeliverable,
            description: None,
            subscribers: Vec::new(),
        }));
        agents
    }

    fn missed(&self) -> Vec<(String, u64)> {
        let missed = self.missed.lock();
        let names = missed.iter();
        names
            .map(|(_, name, count)| (name.to_owned(), count))
            .collect()
    }

    fn subscription_count(&self) -> usize {
        self.table.read().subscription_count()
    }
}

fn subscriber((instance, connection, outlet): (String, u64, &Arc<SlimOutlet>)) -> SubscriberView {
    let (delivered, dropped) = outlet.counted();
    SubscriberView {
        instance,
        connection,
        remote: outlet.remote().to_owned(),
        delivered,
        dropped,
        description: None,
    }
}

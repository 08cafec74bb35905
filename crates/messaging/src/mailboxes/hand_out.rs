//! Deliveries of mailbox messages to subscribers, and their outcomes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mailbox::record::Write;
use mailbox::{Again, Answer, Eligibility, Offer};
use platform::Counter;
use routing::{ConnectionId, Subscriber, Table};
use store::Location;

use super::Mailboxes;
use super::lookup::WriteLookup;
use super::pull::{DeliveryParts, Pulls};
use super::slot::{Instance, Slot, State};
use crate::lane::Caller;
use crate::outlet::{Delivery, Message, Outgoing};
use crate::peer::{Peer, PushOutcome};

/// The connection id of mailboxes as senders; no connection has it.
pub(super) const NOBODY: ConnectionId = ConnectionId(0);

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The subscriber acknowledged the message.
    Acknowledged,
    /// The message must be delivered again.
    Again(Again),
}

impl Mailboxes {
    /// Applies the outcomes of deliveries, and delivers more messages if there is room.
    pub(crate) fn settle(
        self: &Arc<Self>,
        outcomes: &mut Vec<(Arc<Slot>, u64, Outcome)>,
        dirty: &mut Vec<Arc<Peer>>,
    ) {
        while let Some((slot, ..)) = outcomes.first() {
            let slot = slot.clone();
            let same = |(other, ..): &mut (Arc<Slot>, u64, Outcome)| Arc::ptr_eq(other, &slot);
            let own: Vec<_> = outcomes.extract_if(.., same).collect();
            // A mailbox with messages in delivery is not unloaded.
            let Some(mut state) = slot.lock_loaded() else {
                continue;
            };
            let now_ms = self.platform.expiry_ms();
            for (_, offset, outcome) in own {
                let counter = match outcome {
                    Outcome::Acknowledged if state.mailbox.acknowledge(offset) => {
                        Counter::Acknowledged
                    }
                    Outcome::Again(again) if state.mailbox.again(offset, again, now_ms) => {
                        Counter::Unacknowledged
                    }
                    _ => continue,
                };
                self.platform.counters.count(counter);
            }
            state.used_ns = self.platform.now_ns();
            self.hand_out(&slot, &mut state, dirty);
            drop(state);
            self.fetch(&slot);
        }
    }

    /// Delivers as many messages as there is room for, and appends notes about changes.
    pub(super) fn hand_out(&self, slot: &Arc<Slot>, state: &mut State, dirty: &mut Vec<Arc<Peer>>) {
        let now_ms = self.platform.expiry_ms();
        if let Some(location) = state.location {
            self.update_durable(location, state);
            let table = self.router.table.read();
            let has_subscriber = table.all(&state.target, NOBODY).next().is_some();
            if has_subscriber || state.pulls.has_takers() {
                let counter = Counter::Deliveries;
                let mut round = DeliveryRound {
                    mailboxes: self,
                    slot,
                    table: &table,
                    lookup: WriteLookup::new(&self.store, location, &mut state.fetched),
                    pulls: &mut state.pulls,
                    dirty,
                    count: 0,
                };
                let (mailbox, target) = (&mut state.mailbox, &state.target);
                let methods = &mut state.methods;
                mailbox.hand_out(now_ms, |offer| round.offer(offer, target, methods));
                self.platform.counters.add_to(counter, round.count);
                state.pulls.end_round();
            }
        }
        let expired = state.mailbox.take_expired();
        self.platform.counters.add_to(Counter::Expired, expired);
        let died = state.mailbox.take_died();
        self.platform.counters.add_to(Counter::DeadLetters, died);
        // Writers get the error of a failed append.
        let _ = state.note(&self.store, now_ms);
    }

    fn update_durable(&self, location: Location, state: &mut State) {
        if state.mailbox.is_unsynced()
            && let Some(stream) = self.store.journal.stream(location.shard, location.stream)
        {
            state.mailbox.durable(stream.next_durable);
        }
    }
}

/// The context of a round of deliveries from one mailbox.
struct DeliveryRound<'a> {
    mailboxes: &'a Mailboxes,
    slot: &'a Arc<Slot>,
    table: &'a Table<Arc<Peer>>,
    lookup: WriteLookup<'a>,
    pulls: &'a mut Pulls,
    dirty: &'a mut Vec<Arc<Peer>>,
    count: u64,
}

type Subscribed = Subscriber<Arc<Peer>>;

impl DeliveryRound<'_> {
    fn offer(
        &mut self,
        offer: Offer<'_, Instance>,
        target: &routing::Target,
        methods: &mut super::slot::Methods,
    ) -> Answer<Instance> {
        let Some(stored) = self.lookup.find(offer.record) else {
            return Answer::NoSubscriber;
        };
        let Ok(write) = Write::decode(stored.write()) else {
            return Answer::NoSubscriber;
        };
        let message = DeliveryParts {
            method: &methods.get(write.method),
            write,
            delivery: Delivery {
                offset: offer.offset,
                delivery: offer.delivery,
                written_ms: stored.written_ms,
            },
        };
        let table = self.table;
        match offer.place {
            Eligibility::Any => {
                let is_takers_turn = self.pulls.is_takers_turn();
                let taken = |round: &mut Self| round.lend(&message, |_| true);
                let handed = |round: &mut Self| {
                    let mut anybody = table.any(target, NOBODY);
                    anybody.find_map(|it| round.hand(it, &message))
                };
                let found = match is_takers_turn {
                    true => taken(self).or_else(|| handed(self)),
                    false => handed(self).or_else(|| taken(self)),
                };
                answer(found, Answer::NoSubscriber)
            }
            Eligibility::Only(only) if only.connection == NOBODY => {
                answer(self.lend(&message, |it| it == only), Answer::Full)
            }
            Eligibility::Only(only) => {
                let mut all = table.all(target, NOBODY);
                let found = all.find(|it| is_at(it, only));
                answer(found.and_then(|it| self.hand(it, &message)), Answer::Full)
            }
            Eligibility::Other(other) => {
                let mut others = table.any(target, NOBODY).filter(|it| !is_at(it, other));
                let found = others.find_map(|it| self.hand(it, &message));
                let found = found.or_else(|| self.lend(&message, |it| it != other));
                let found = found.or_else(|| {
                    let mut all = table.all(target, NOBODY);
                    let same = all.find(|it| is_at(it, other))?;
                    self.hand(same, &message)
                });
                let found = found.or_else(|| self.lend(&message, |it| it == other));
                answer(found, Answer::NoSubscriber)
            }
        }
    }

    /// Delivers a message to a subscriber, if it has room.
    fn hand(&mut self, subscriber: &Subscribed, parts: &DeliveryParts<'_>) -> Option<Instance> {
        let peer = &subscriber.peer;
        let ack_timeout = self.mailboxes.options.ack_timeout;
        let now_ns = self.mailboxes.platform.now_ns();
        let deadline_ns = now_ns.saturating_add(ack_timeout.as_nanos() as u64);
        let caller = Caller::Mailbox {
            slot: self.slot.clone(),
            offset: parts.delivery.offset,
        };
        let router = &self.mailboxes.router;
        let ticket = router.admit_call(peer, caller, deadline_ns)?;
        let write = &parts.write;
        let outgoing = Outgoing::Delivery {
            to: &subscriber.name,
            method: parts.method,
            ticket,
            // The node's own agents trust a source, so they never get one that was read from disk.
            source: (subscriber.with_source && !peer.facts.trusted).then_some(write.sender),
            delivery: parts.delivery,
            message: Message {
                deadline_ms: Some(u32::try_from(ack_timeout.as_millis()).unwrap_or(u32::MAX)),
                metadata: write.metadata,
                body: write.body,
            },
        };
        if peer.push(outgoing, self.dirty) != PushOutcome::Queued {
            peer.lane.lock().calls.take(ticket);
            return None;
        }
        subscriber.delivered.fetch_add(1, Ordering::Relaxed);
        self.pulls.set_takers_turn(true);
        self.count += 1;
        Some(Instance {
            connection: subscriber.connection,
            name: subscriber.name.clone(),
        })
    }

    /// Lends a message to the first waiting taker that is eligible and has room.
    fn lend(
        &mut self,
        parts: &DeliveryParts<'_>,
        is_eligible: impl Fn(&Instance) -> bool,
    ) -> Option<Instance> {
        let ports = &self.mailboxes.platform.ports;
        let nonce = || ports.entropy.next_u64();
        let now = self.mailboxes.now();
        let at = self.pulls.lend(parts, is_eligible, now, nonce)?;
        self.count += 1;
        Some(at)
    }
}

fn is_at(subscriber: &Subscribed, instance: &Instance) -> bool {
    subscriber.connection == instance.connection && subscriber.name == instance.name
}

fn answer(handed: Option<Instance>, otherwise: Answer<Instance>) -> Answer<Instance> {
    handed.map_or(otherwise, Answer::Handed)
}

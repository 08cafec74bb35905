//! Delivery of one-way messages: copies to subscribers, drops at full subscribers, and pauses of
//! senders.

use std::sync::atomic::Ordering;

use model::ErrorCode;
use platform::{Counter, Durable};
use quota_service::Throttled;

use crate::lane::Admission;
use crate::outlet::{Message, Outgoing};
use crate::peer::PushOutcome;
use crate::route::{Cast, Route};
use crate::turn::Turn;

/// The copies of a one-way message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// The number of copies that were enqueued.
    pub delivered: u32,
    /// The number of copies that were dropped at full subscribers.
    pub dropped: u32,
}

/// The reason why a write to memory was not delivered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MemoryWriteError {
    /// A limit or a halt.
    #[error(transparent)]
    Throttled(#[from] Throttled),
    /// The route leads to all subscribers.
    #[error("a write needs one receiver: bind the route with cast `any`")]
    NotOneReceiver,
    /// No subscriber has room.
    #[error("every subscriber of the name is full")]
    Full,
}

impl MemoryWriteError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Throttled(throttled) => throttled.code(),
            Self::NotOneReceiver => ErrorCode::InvalidArgument,
            Self::Full => ErrorCode::Busy,
        }
    }
}

impl Turn<'_> {
    /// Sends a one-way message. Returns its copies, and what must be on disk before they are
    /// reported.
    pub fn send(
        &mut self,
        route: &Route,
        message: Message<'_>,
    ) -> Result<(Copies, Option<Durable>), Throttled> {
        self.local.tally.count(Counter::Sends);
        self.local.tally.add(Counter::Bytes, message.size());
        let charge = self.admit_send(route)?;
        Ok((self.deliver(route, message), charge))
    }

    /// Sends one-way messages to all subscribers of a route, in order, and takes the locks of each
    /// subscriber once for all of them. Returns false, and sends nothing, if the route leads to one
    /// subscriber or quotas count messages: then each is sent by itself ([`Turn::send`]).
    pub fn send_run(&mut self, route: &Route, messages: &[Message<'_>]) -> bool {
        let is_counted = self.messaging.quotas().is_at_doors() && !route.is_to_node();
        if is_counted || route.cast == Cast::Any {
            return false;
        }
        let size = messages.iter().map(Message::size).sum();
        self.local.tally.add(Counter::Sends, messages.len() as u64);
        self.local.tally.add(Counter::Bytes, size);
        self.deliver_run(route, messages);
        true
    }

    fn deliver_run(&mut self, route: &Route, messages: &[Message<'_>]) {
        let table = &**self
            .table
            .get_or_insert_with(|| self.messaging.router.table.read());
        let (count, throttle) = (messages.len() as u64, &route.throttle);
        let (mut delivered, mut dropped) = (0, 0);
        for subscriber in table.all(&route.target, self.peer.id) {
            let receiver = &subscriber.peer;
            let (admitted, is_pressed) =
                receiver
                    .lane
                    .lock()
                    .admit_all(messages, throttle.id, self.now_ns);
            let mut lost = count - admitted.len() as u64;
            let mut handed = PushOutcome::NoRoom;
            if !admitted.is_empty() {
                let source = subscriber
                    .with_source
                    .then(|| receiver.source_from(self.peer));
                let outgoing = Outgoing::Sends {
                    to: &subscriber.name,
                    method: &route.method,
                    source: source.as_deref(),
                    messages: &admitted,
                };
                handed = receiver.push(outgoing, &mut self.local.dirty);
                if handed != PushOutcome::Queued {
                    let mut lane = receiver.lane.lock();
                    admitted.iter().for_each(|it| lane.revoke(it.size()));
                }
            }
            match handed {
                PushOutcome::Queued => {
                    let queued = count - lost;
                    delivered += queued;
                    subscriber.delivered.fetch_add(queued, Ordering::Relaxed);
                    if is_pressed {
                        let dirty = &mut self.local.dirty;
                        self.messaging.router.press(receiver, throttle, dirty);
                    }
                }
                PushOutcome::Gone => {}
                PushOutcome::NoRoom => lost = count,
            }
            if lost > 0 {
                dropped += lost;
                subscriber.dropped.fetch_add(lost, Ordering::Relaxed);
            }
        }
        if delivered + dropped == 0 {
            self.local.tally.add(Counter::Undeliverable, count);
            table.count_undeliverable(&route.target, count);
        }
        self.local.tally.add(Counter::Delivered, delivered);
        self.local.tally.add(Counter::Dropped, dropped);
    }

    /// Sends a one-way message to one subscriber, like a mailbox, which is read by one instance of
    /// its name. Returns the number of subscribers that it was enqueued for, 0 or 1, and what must be
    /// on disk before it is acknowledged.
    pub fn write_to_memory(
        &mut self,
        route: &Route,
        message: Message<'_>,
    ) -> Result<(u32, Option<Durable>), MemoryWriteError> {
        let charge = self.admit_send(route)?;
        self.local.tally.count(Counter::Writes);
        self.local.tally.add(Counter::Bytes, message.size());
        if route.cast == Cast::All {
            return Err(MemoryWriteError::NotOneReceiver);
        }
        match self.deliver(route, message) {
            Copies {
                delivered: 0,
                dropped: 1..,
            } => Err(MemoryWriteError::Full),
            Copies { delivered, .. } => Ok((delivered, charge)),
        }
    }

    fn deliver(&mut self, route: &Route, message: Message<'_>) -> Copies {
        let table = &**self
            .table
            .get_or_insert_with(|| self.messaging.router.table.read());
        let Route {
            target,
            cast,
            method,
            throttle,
            ..
        } = route;
        let cast = *cast;
        let mut copies = Copies::default();
        let matching = match cast {
            Cast::Any => table.any(target, self.peer.id),
            Cast::All => table.all(target, self.peer.id),
        };
        for subscriber in matching {
            let receiver = &subscriber.peer;
            let admission = receiver
                .lane
                .lock()
                .admit(message.size(), throttle.id, self.now_ns);
            let source = subscriber
                .with_source
                .then(|| receiver.source_from(self.peer));
            let outgoing = Outgoing::Send {
                to: &subscriber.name,
                method,
                source: source.as_deref(),
                message,
            };
            if admission == Admission::Full {
                copies.dropped += 1;
                subscriber.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let handed = receiver.push(outgoing, &mut self.local.dirty);
            if handed != PushOutcome::Queued {
                receiver.lane.lock().revoke(message.size());
            }
            match handed {
                PushOutcome::Queued => {}
                PushOutcome::Gone => continue,
                PushOutcome::NoRoom => {
                    copies.dropped += 1;
                    subscriber.dropped.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
            }
            if admission == Admission::Pressed {
                let dirty = &mut self.local.dirty;
                self.messaging.router.press(receiver, throttle, dirty);
            }
            copies.delivered += 1;
            subscriber.delivered.fetch_add(1, Ordering::Relaxed);
            if cast == Cast::Any {
                break;
            }
        }
        if cast == Cast::Any && copies.delivered > 0 {
            // Instances that were full lost nothing, because another one got the message.
            copies.dropped = 0;
        }
        if copies.delivered + copies.dropped == 0 {
            self.local.tally.count(Counter::Undeliverable);
            table.count_undeliverable(target, 1);
        }
        self.local
            .tally
            .add(Counter::Delivered, u64::from(copies.delivered));
        self.local
            .tally
            .add(Counter::Dropped, u64::from(copies.dropped));
        copies
    }

    /// Counts a message of the client, sent or refused, and returns credit in halves of its window.
    /// Called only after the delivery: the sender receives a pause before it may send more, so that
    /// its messages in flight, including this one, never exceed its window.
    pub fn consume(&mut self, size: u64) {
        self.local.consumed_messages += 1;
        self.local.consumed_bytes += size;
        let limits = &self.messaging.limits;
        if self.local.consumed_messages >= limits.credit_messages / 2
            || self.local.consumed_bytes >= limits.credit_bytes / 2
        {
            let messages = std::mem::take(&mut self.local.consumed_messages);
            let bytes = std::mem::take(&mut self.local.consumed_bytes);
            self.push_to_client(Outgoing::Credit { messages, bytes });
        }
    }
}

#[cfg(test)]
mod tests;

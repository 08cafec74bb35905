//! Delivery of one-way messages: copies to subscribers, drops at full subscribers, and pauses of
//! senders.

use std::sync::atomic::Ordering;

use model::ErrorCode;
use routing::Ticket;

use crate::counters::Counter;
use crate::lane::Admission;
use crate::peer::PushOutcome;
use crate::ports::{Failure, Message, Outgoing};
use crate::quotas::Told;
use crate::store::{Answer, Key};
use crate::turn::{Bound, Cast, Turn, lookup};

/// The moment at which a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on disk, with an optional key for retries.
    Disk(Option<Key>),
    /// Once it is enqueued for the current subscribers.
    Memory,
}

/// The copies of a one-way message.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    delivered: u32,
    dropped: u32,
}

impl Turn<'_> {
    /// Sends a one-way message; `report` requests a receipt.
    pub fn send(&mut self, route: u16, report: Option<Ticket>, message: Message<'_>) {
        self.local.tally.count(Counter::Sends);
        let size = message.size();
        self.local.tally.add(Counter::Bytes, size);
        let told = match self.admit_send(route) {
            Ok(told) => told,
            Err(throttled) => {
                match report {
                    Some(tag) => self.fail(tag, throttled.as_failure()),
                    None => self.inner.counters.count_failure(throttled.code()),
                }
                return self.consume(size);
            }
        };
        match self.deliver(route, message) {
            Ok(Copies { delivered, dropped }) => match (report, told) {
                (None, _) => {}
                (Some(tag), Told::AtOnce) => self.answer(Outgoing::Receipt {
                    tag,
                    delivered,
                    dropped,
                }),
                (Some(tag), Told::OnDisk) => {
                    let receipt = Answer::Receipt { delivered, dropped };
                    self.local.answers.push_charged(tag, receipt);
                }
            },
            Err((code, message)) => {
                if let Some(tag) = report {
                    self.fail(tag, Failure::new(code, &message));
                } else {
                    self.inner.counters.count_failure(code);
                }
            }
        }
        self.consume(size);
    }

    /// Sends a one-way message that is acknowledged.
    pub fn write(&mut self, route: u16, tag: Ticket, durability: Durability, message: Message<'_>) {
        let mut size = message.size();
        let told = match self.admit_send(route) {
            Ok(told) => told,
            Err(throttled) => {
                self.fail(tag, throttled.as_failure());
                return self.consume(size);
            }
        };
        match durability {
            Durability::Disk(key) => {
                if key.is_some() {
                    size += Key::SIZE;
                }
                self.write_to_disk(route, tag, key, message);
            }
            Durability::Memory => self.write_to_memory(route, tag, message, told),
        }
        self.consume(size);
    }

    fn write_to_memory(&mut self, route: u16, tag: Ticket, message: Message<'_>, told: Told) {
        self.local.tally.count(Counter::Writes);
        self.local.tally.add(Counter::Bytes, message.size());
        match self.deliver_to_one(route, message) {
            Ok(Copies {
                delivered: 0,
                dropped: 1..,
            }) => {
                let message = "every subscriber of the name is full";
                self.fail(tag, Failure::new(ErrorCode::Busy, message));
            }
            Ok(Copies { delivered, .. }) => match told {
                Told::AtOnce => self.answer(Outgoing::Copies {
                    tag,
                    copies: delivered,
                }),
                Told::OnDisk => {
                    let copies = Answer::Copies(delivered);
                    self.local.answers.push_charged(tag, copies);
                }
            },
            Err((code, message)) => self.fail(tag, Failure::new(code, &message)),
        }
    }

    /// Delivers a write to one subscriber, like a mailbox, which is read by one instance of its
    /// name.
    fn deliver_to_one(
        &mut self,
        route: u16,
        message: Message<'_>,
    ) -> Result<Copies, (ErrorCode, String)> {
        match lookup(&self.local.routes, route)?.cast {
            Cast::Any => self.deliver(route, message),
            Cast::All => {
                let message = "a write needs one receiver: bind the route with cast `any`";
                Err((ErrorCode::InvalidArgument, message.to_owned()))
            }
        }
    }

    fn deliver(&mut self, route: u16, message: Message<'_>) -> Result<Copies, (ErrorCode, String)> {
        let table = &**self.table.get_or_insert_with(|| self.inner.table.read());
        let Bound {
            target,
            cast,
            method,
            throttle,
            ..
        } = lookup(&self.local.routes, route)?;
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
                receiver.press(throttle, &mut self.local.dirty, self.inner);
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
        Ok(copies)
    }

    /// Returns credit to the sender in halves of its window. Called only after the delivery: the
    /// sender receives a pause before it may send more, so that its messages in flight, including
    /// this one, never exceed its window.
    fn consume(&mut self, size: u64) {
        self.local.consumed_messages += 1;
        self.local.consumed_bytes += size;
        let limits = &self.inner.limits;
        if self.local.consumed_messages >= limits.credit_messages / 2
            || self.local.consumed_bytes >= limits.credit_bytes / 2
        {
            let messages = std::mem::take(&mut self.local.consumed_messages);
            let bytes = std::mem::take(&mut self.local.consumed_bytes);
            self.answer(Outgoing::Credit { messages, bytes });
        }
    }
}

#[cfg(test)]
mod tests;

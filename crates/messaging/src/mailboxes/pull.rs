//! The takers and the leases of a mailbox: clients without a subscription take messages of a mailbox for a time, the *lease*, in
//! which they answer them.
//!
//! A taker waits with the mailbox until it gets messages. It is a receiver like a subscriber, and the
//! mailbox serves both in turn. Leases are held in memory only: after a restart all of them have
//! ended, and their messages are delivered again.
//!
//! Invariant: *a lease that has ended answers nothing.* A lease has a random number, so that the
//! lease of an earlier delivery, or of an earlier start of the node, is never taken for another.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use mailbox::record::Write;
use parking_lot::Mutex;

use super::slot::Instance;
use crate::outlet::Delivery;

/// A time on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// On the node's monotonic clock, in nanoseconds.
    pub(super) ns: u64,
    /// In milliseconds since 1970-01-01 UTC.
    pub(super) unix_ms: u64,
}

/// The id of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseId {
    /// The offset of the message in its mailbox.
    pub offset: u64,
    nonce: u64,
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.offset, self.nonce)
    }
}

impl FromStr for LeaseId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (offset, nonce) = text.split_once('-').ok_or(())?;
        let is_canonical = nonce.len() == 16 && nonce.bytes().all(|it| it.is_ascii_hexdigit());
        let is_number = offset.bytes().all(|it| it.is_ascii_digit());
        if !is_canonical || !is_number {
            return Err(());
        }
        Ok(Self {
            offset: offset.parse().map_err(|_| ())?,
            nonce: u64::from_str_radix(nonce, 16).map_err(|_| ())?,
        })
    }
}

/// The request of messages.
#[derive(Clone, Copy, Debug)]
pub struct TakeOptions<'a> {
    /// The instance that takes. As long as it has unanswered messages of a sender, the later ones of
    /// that sender go to no other.
    pub instance: &'a str,
    /// Maximum number of messages.
    pub messages_max: usize,
    /// Maximum size of their bodies and metadata in bytes; one message may be larger.
    pub bytes_max: usize,
    /// Time in which the messages have to be answered.
    pub lease: Duration,
}

/// A message that was taken.
#[derive(Clone, Debug)]
pub struct TakenMessage {
    /// The lease, which answers it.
    pub lease: LeaseId,
    /// The end of the lease, in milliseconds since 1970-01-01 UTC.
    pub lease_until_ms: u64,
    /// The delivery.
    pub delivery: Delivery,
    /// The time of expiry, in milliseconds since 1970-01-01 UTC.
    pub expires_ms: u64,
    /// The sender.
    pub sender: String,
    /// The method; empty for none.
    pub method: Arc<str>,
    /// Opaque metadata entries.
    pub metadata: Vec<u8>,
    /// Opaque bytes.
    pub body: Vec<u8>,
}

/// The answer to messages that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// The messages are acknowledged.
    Acknowledge,
    /// They have to be delivered again: after the pause, or after one that grows with each delivery.
    Again {
        /// The length of the pause.
        pause: Option<Duration>,
    },
    /// They are still being processed: their leases last that long from now on.
    Renew {
        /// The length of the lease.
        lease: Duration,
    },
}

/// The outcome of an answer to leases.
#[derive(Debug)]
pub struct LeaseOutcome {
    /// The leases that had ended before; nothing happened to their messages.
    pub ended: Vec<LeaseId>,
    /// The answer that must be on disk before the outcome is reported.
    pub durable: Option<platform::Durable>,
}

/// A message that was lent to a taker.
#[derive(Debug)]
pub(super) struct Lease {
    nonce: u64,
    pub(super) until_ns: u64,
}

/// The takers and the leases of one mailbox.
#[derive(Default)]
pub(super) struct Pulls {
    /// The waiting takers, in the order of their requests.
    pub(super) takers: VecDeque<Arc<Taker>>,
    /// By offset.
    pub(super) leases: BTreeMap<u64, Lease>,
    /// True if takers are offered the next message before subscribers.
    is_takers_turn: bool,
}

/// A request that waits for messages.
pub(super) struct Taker {
    pub(super) instance: Instance,
    pub(super) messages_max: usize,
    pub(super) bytes_max: usize,
    pub(super) lease: Duration,
    pub(super) hand: Mutex<Hand>,
}

/// The messages that a taker was lent and that its client has not received.
#[derive(Default)]
pub(super) struct Hand {
    pub(super) messages: Vec<TakenMessage>,
    bytes: usize,
    pub(super) waker: Option<Waker>,
}

impl Pulls {
    pub(super) fn has_takers(&self) -> bool {
        !self.takers.is_empty()
    }

    pub(super) fn is_takers_turn(&self) -> bool {
        self.is_takers_turn
    }

    pub(super) fn set_takers_turn(&mut self, is_takers_turn: bool) {
        self.is_takers_turn = is_takers_turn;
    }

    /// Lends a message to the first eligible taker that has room, and returns the taker's instance.
    pub(super) fn lend(
        &mut self,
        parts: &DeliveryParts<'_>,
        is_eligible: impl Fn(&Instance) -> bool,
        now: Now,
        nonce: impl FnOnce() -> u64,
    ) -> Option<Instance> {
        let size = parts.write.metadata.len() + parts.write.body.len();
        let mut eligible = self.takers.iter().filter(|it| is_eligible(&it.instance));
        let taker = eligible.find(|it| it.has_room(size))?.clone();
        let offset = parts.delivery.offset;
        let nonce = nonce();
        let until_ns = now.ns.saturating_add(nanoseconds(taker.lease));
        self.leases.insert(offset, Lease { nonce, until_ns });
        self.is_takers_turn = false;
        let mut hand = taker.hand.lock();
        hand.bytes += size;
        hand.messages.push(TakenMessage {
            lease: LeaseId { offset, nonce },
            lease_until_ms: now.unix_ms.saturating_add(milliseconds(taker.lease)),
            delivery: parts.delivery,
            expires_ms: parts.write.expires_ms,
            sender: parts.write.sender.to_owned(),
            method: parts.method.clone(),
            metadata: parts.write.metadata.to_vec(),
            body: parts.write.body.to_vec(),
        });
        Some(taker.instance.clone())
    }

    /// Ends a round of deliveries: the takers that got messages wait no longer.
    pub(super) fn end_round(&mut self) {
        self.takers.retain(|taker| !taker.is_served());
    }

    /// Removes a lease, if it has not ended.
    pub(super) fn end(&mut self, id: LeaseId, now_ns: u64) -> bool {
        let is_valid = self.find(id, now_ns).is_some();
        if is_valid {
            self.leases.remove(&id.offset);
        }
        is_valid
    }

    pub(super) fn find(&mut self, id: LeaseId, now_ns: u64) -> Option<&mut Lease> {
        let lease = self.leases.get_mut(&id.offset)?;
        (lease.nonce == id.nonce && lease.until_ns > now_ns).then_some(lease)
    }
}

impl Taker {
    fn has_room(&self, size: usize) -> bool {
        let hand = self.hand.lock();
        let fits = hand.messages.is_empty() || hand.bytes + size <= self.bytes_max;
        hand.messages.len() < self.messages_max && fits
    }

    /// Wakes the client if the taker has messages. Returns whether it has.
    fn is_served(&self) -> bool {
        let mut hand = self.hand.lock();
        let is_served = !hand.messages.is_empty();
        if is_served && let Some(waker) = hand.waker.take() {
            waker.wake();
        }
        is_served
    }
}

/// A message to deliver.
pub(super) struct DeliveryParts<'a> {
    pub(super) write: Write<'a>,
    pub(super) method: &'a Arc<str>,
    pub(super) delivery: Delivery,
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

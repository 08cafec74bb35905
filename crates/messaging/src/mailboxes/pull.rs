//! Pulls: clients without a subscription take messages of a mailbox for a time, the *lease*, in
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
use std::task::{Poll, Waker};
use std::time::Duration;

use mailbox::{Again, Mailbox, State as Waits};
use model::Name;
use parking_lot::Mutex;
use platform::{Counter, Durable};
use routing::ConnectionId;

use super::Mailboxes;
use super::error::{LeaseError, MailboxError};
use super::hand_out::{DeliveryParts, NOBODY};
use super::slot::{Instance, Slot, State};
use crate::outlet::Delivery;
use crate::peer::Peer;

/// Maximum number of takers that wait for messages of one mailbox.
const TAKERS_MAX: usize = 1_024;

/// A time on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// On the node's monotonic clock, in nanoseconds.
    ns: u64,
    /// In milliseconds since 1970-01-01 UTC.
    unix_ms: u64,
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
    /// What must be on disk before the outcome is reported.
    pub durable: Option<Durable>,
}

/// A message that was lent to a taker.
#[derive(Debug)]
struct Lease {
    nonce: u64,
    until_ns: u64,
}

/// The takers and the leases of one mailbox.
#[derive(Default)]
pub(super) struct Pulls {
    /// The waiting takers, in the order of their requests.
    takers: VecDeque<Arc<Taker>>,
    /// By offset.
    leases: BTreeMap<u64, Lease>,
    /// True if takers are offered the next message before subscribers.
    is_takers_turn: bool,
}

/// A request that waits for messages.
struct Taker {
    instance: Instance,
    messages_max: usize,
    bytes_max: usize,
    lease: Duration,
    hand: Mutex<Hand>,
}

/// The messages that a taker was lent and that its client has not received.
#[derive(Default)]
struct Hand {
    messages: Vec<TakenMessage>,
    bytes: usize,
    waker: Option<Waker>,
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
    fn end(&mut self, id: LeaseId, now_ns: u64) -> bool {
        let is_valid = self.find(id, now_ns).is_some();
        if is_valid {
            self.leases.remove(&id.offset);
        }
        is_valid
    }

    fn find(&mut self, id: LeaseId, now_ns: u64) -> Option<&mut Lease> {
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

/// A wait for messages of a mailbox. Messages that it was lent and that were not returned are
/// delivered again when it is dropped.
pub struct Taking {
    mailboxes: Arc<Mailboxes>,
    slot: Arc<Slot>,
    taker: Arc<Taker>,
}

impl Taking {
    /// Returns the messages, at least one, or registers the waker.
    pub fn poll_messages(&mut self, waker: &Waker) -> Poll<Vec<TakenMessage>> {
        let mut hand = self.taker.hand.lock();
        if hand.messages.is_empty() {
            hand.waker = Some(waker.clone());
            return Poll::Pending;
        }
        Poll::Ready(std::mem::take(&mut hand.messages))
    }

    /// Returns whether a message of the mailbox is being read from the disk.
    pub fn is_reading(&self) -> bool {
        let state = self.slot.lock_loaded();
        state.is_some_and(|state| state.fetched.is_under_way)
    }

    /// Ends the wait, and returns the messages that arrived last, if any.
    pub fn finish(self) -> Vec<TakenMessage> {
        self.leave();
        std::mem::take(&mut self.taker.hand.lock().messages)
    }

    /// Makes the mailbox lend no more messages to the taker.
    fn leave(&self) {
        if let Some(mut state) = self.slot.lock_loaded() {
            let takers = &mut state.pulls.takers;
            takers.retain(|it| !Arc::ptr_eq(it, &self.taker));
        }
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        self.leave();
        let messages = std::mem::take(&mut self.taker.hand.lock().messages);
        if !messages.is_empty() {
            let leases: Vec<_> = messages.iter().map(|it| it.lease).collect();
            self.mailboxes.return_messages(&self.slot, &leases);
        }
    }
}

impl Mailboxes {
    /// Requests messages of a mailbox, which need not exist. Returns `None` if the disk must be read
    /// first.
    pub fn take_at_once(
        self: &Arc<Self>,
        name: &Name,
        options: TakeOptions<'_>,
    ) -> Result<Option<Taking>, LeaseError> {
        let taker = taker(name, options)?;
        let mut dirty = Vec::new();
        let taking = self
            .with_mailbox(name.base(), |slot, state| {
                self.begin_taking(slot, state, &taker, &mut dirty)
            })
            .map_err(MailboxError::from)?;
        let taking = taking.transpose()?;
        if let Some(taking) = &taking {
            self.finish(&taking.slot, dirty);
        }
        Ok(taking)
    }

    /// Like [`Mailboxes::take_at_once`], for threads that may wait for the disk.
    pub fn take(
        self: &Arc<Self>,
        name: &Name,
        options: TakeOptions<'_>,
    ) -> Result<Taking, LeaseError> {
        let taker = taker(name, options)?;
        let mut dirty = Vec::new();
        let taking = self
            .wait_for_mailbox(name.base(), |slot, state| {
                self.begin_taking(slot, state, &taker, &mut dirty)
            })
            .map_err(MailboxError::from)??;
        self.finish(&taking.slot, dirty);
        Ok(taking)
    }

    fn begin_taking(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        state: &mut State,
        taker: &Arc<Taker>,
        dirty: &mut Vec<Arc<Peer>>,
    ) -> Result<Taking, LeaseError> {
        if state.pulls.takers.len() >= TAKERS_MAX {
            return Err(LeaseError::TooManyTakers { limit: TAKERS_MAX });
        }
        state.pulls.takers.push_back(taker.clone());
        self.hand_out(slot, state, dirty);
        Ok(Taking {
            mailboxes: self.clone(),
            slot: slot.clone(),
            taker: taker.clone(),
        })
    }

    /// Returns the number of clients that wait for messages of a mailbox.
    pub fn taker_count(&self, base: &str) -> usize {
        let slot = self.loaded.lock().get(base).cloned();
        let state = slot.as_ref().and_then(|slot| slot.lock_loaded());
        state.map_or(0, |state| state.pulls.takers.len())
    }

    /// Answers messages that were taken. A lease that has ended answers nothing, and is returned.
    pub fn answer_leases(
        self: &Arc<Self>,
        name: &Name,
        leases: &[LeaseId],
        answer: LeaseAnswer,
    ) -> Result<LeaseOutcome, LeaseError> {
        let slot = self.loaded.lock().get(name.base()).cloned();
        // A mailbox that is not loaded has no leases.
        let Some((slot, mut state)) = slot.as_ref().and_then(|it| Some((it, it.lock_loaded()?)))
        else {
            let ended = leases.to_vec();
            let durable = None;
            return Ok(LeaseOutcome { ended, durable });
        };
        let mut ended = leases.to_vec();
        ended.retain(|id| !self.answer_one(&mut state, *id, answer));
        let has_answered = ended.len() < leases.len();
        let noted = state.note(&self.store, self.platform.unix_ms());
        let mut dirty = Vec::new();
        self.hand_out(slot, &mut state, &mut dirty);
        let is_stored = has_answered && !matches!(answer, LeaseAnswer::Renew { .. });
        let ticket = state.stream.ticket.filter(|_| is_stored);
        let durable = ticket.map(|it| Durable::new(&self.store.journal, [None, Some(it)]));
        drop(state);
        self.finish(slot, dirty);
        match noted {
            Err(error) if has_answered => {
                let reason = self.store.append_error(error).to_string();
                Err(LeaseError::Unconfirmed { reason })
            }
            _ => Ok(LeaseOutcome { ended, durable }),
        }
    }

    /// Applies an answer to one message. Returns false if its lease has ended.
    fn answer_one(&self, state: &mut State, id: LeaseId, answer: LeaseAnswer) -> bool {
        let now = self.now();
        let again = match answer {
            LeaseAnswer::Renew { lease } => {
                let is_there = is_in_delivery(&state.mailbox, id.offset);
                let found = state.pulls.find(id, now.ns).filter(|_| is_there);
                let until_ns = now.ns.saturating_add(nanoseconds(lease));
                return found.map(|lease| lease.until_ns = until_ns).is_some();
            }
            LeaseAnswer::Acknowledge => None,
            LeaseAnswer::Again { pause: None } => Some(Again::Later),
            LeaseAnswer::Again { pause: Some(pause) } => Some(Again::After {
                pause_ms: milliseconds(pause),
            }),
        };
        if !state.pulls.end(id, now.ns) {
            return false;
        }
        let (is_there, counter) = match again {
            None => (state.mailbox.acknowledge(id.offset), Counter::Acknowledged),
            Some(again) => {
                let now_ms = self.platform.expiry_ms();
                let is_there = state.mailbox.again(id.offset, again, now_ms);
                (is_there, Counter::Unacknowledged)
            }
        };
        if is_there {
            self.platform.counters.count(counter);
        }
        is_there
    }

    /// Ends the leases that have run out: their messages are delivered again.
    pub(super) fn end_leases(&self, state: &mut State) {
        let now_ns = self.platform.now_ns();
        let leases = &mut state.pulls.leases;
        let over: Vec<_> = leases
            .extract_if(.., |_, lease| lease.until_ns <= now_ns)
            .map(|(offset, _)| offset)
            .collect();
        // Messages that were removed by hand left their leases behind.
        if leases.len() > state.mailbox.in_flight() {
            leases.retain(|offset, _| is_in_delivery(&state.mailbox, *offset));
        }
        let now_ms = self.platform.expiry_ms();
        for offset in over {
            if state.mailbox.again(offset, Again::Now, now_ms) {
                self.platform.counters.count(Counter::Unacknowledged);
            }
        }
    }

    /// Delivers messages again that their taker did not receive.
    fn return_messages(self: &Arc<Self>, slot: &Arc<Slot>, leases: &[LeaseId]) {
        let Some(mut state) = slot.lock_loaded() else {
            return;
        };
        let (now_ns, now_ms) = (self.platform.now_ns(), self.platform.expiry_ms());
        for id in leases {
            if state.pulls.end(*id, now_ns) && state.mailbox.again(id.offset, Again::Now, now_ms) {
                self.platform.counters.count(Counter::Unacknowledged);
            }
        }
        let mut dirty = Vec::new();
        self.hand_out(slot, &mut state, &mut dirty);
        drop(state);
        self.finish(slot, dirty);
    }

    pub(super) fn now(&self) -> Now {
        Now {
            ns: self.platform.now_ns(),
            unix_ms: self.platform.unix_ms(),
        }
    }
}

/// Returns whether a message is delivered and unanswered.
fn is_in_delivery(mailbox: &Mailbox<Instance>, offset: u64) -> bool {
    let message = mailbox.pending(offset).next();
    message.is_some_and(|it| it.offset == offset && matches!(it.state, Waits::Unanswered))
}

fn taker(name: &Name, options: TakeOptions<'_>) -> Result<Arc<Taker>, LeaseError> {
    let name = name.with_instance(options.instance)?;
    let connection: ConnectionId = NOBODY;
    Ok(Arc::new(Taker {
        instance: Instance { connection, name },
        messages_max: options.messages_max.max(1),
        bytes_max: options.bytes_max,
        lease: options.lease,
        hand: Mutex::default(),
    }))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! Takes of messages, and the answers to messages that were taken.

use std::sync::Arc;
use std::task::{Poll, Waker};

use mailbox::{Again, Mailbox, State as Waits};
use model::Name;
use parking_lot::Mutex;
use platform::{Counter, Durable};

use super::Mailboxes;
use super::error::{LeaseError, MailboxError};
use super::hand_out::NOBODY;
use super::pull::{LeaseAnswer, LeaseId, LeaseOutcome, Now, TakeOptions, TakenMessage, Taker};
use super::pull::{milliseconds, nanoseconds};
use super::slot::{Instance, Slot, State};
use crate::peer::Peer;

/// Maximum number of takers that wait for messages of one mailbox.
const TAKERS_MAX: usize = 1_024;

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
        let slot = self.loaded.get(base);
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
        let slot = self.loaded.get(name.base());
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
    Ok(Arc::new(Taker {
        instance: Instance {
            connection: NOBODY,
            name,
        },
        messages_max: options.messages_max.max(1),
        bytes_max: options.bytes_max,
        lease: options.lease,
        hand: Mutex::default(),
    }))
}

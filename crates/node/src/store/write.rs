//! Writes to mailboxes.

use std::sync::Arc;

use ::mailbox::record::{self, Write};
use ::mailbox::{Accepted, Refused, WriteId};
use journal::Round;
use model::{ErrorCode, Name};
use routing::Ticket;

use super::answers::{Answer, Waiting};
use super::directory::Kind;
use super::mailbox::{Slot, State};
use super::restore::LoadError;
use super::{Store, refusal};
use crate::connection::Local;
use crate::counters::Counter;
use crate::later::Later;
use crate::node::Inner;
use crate::ports::offload::Overloaded;
use crate::ports::{Failure, Message};
use crate::turn::{Cast, SYSTEM_ORG, Turn, lookup};

/// The key and the lifetime that a client gives to a write to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The id of the write: a retry has the same id.
    pub id: [u8; 16],
    /// Maximum lifetime in milliseconds; 0 for the node's maximum.
    pub ttl_ms: u32,
}

impl Key {
    /// Size of a key that counts towards the sender's window, in bytes.
    pub(crate) const SIZE: u64 = 20;
}

/// Pause before retrying a write to a full mailbox, in milliseconds.
const FULL_RETRY_MS: u32 = 1_000;

/// The refusal of a write.
pub(crate) struct Refusal {
    pub(super) code: ErrorCode,
    pub(super) message: String,
    pub(super) retry_after_ms: u32,
}

impl Refusal {
    pub(super) fn as_failure(&self) -> Failure<'_> {
        Failure {
            retry_after_ms: self.retry_after_ms,
            ..Failure::new(self.code, &self.message)
        }
    }
}

/// A write that waits until its mailbox is loaded.
pub(super) struct Deferred {
    /// The encoded record.
    pub(super) bytes: Vec<u8>,
    /// The slot for the result.
    pub(super) later: Arc<Later<WriteOutcome>>,
}

/// The outcome of a write.
pub(super) type WriteOutcome = Result<AcceptedWrite, Refusal>;

/// A write that a mailbox accepted.
pub(super) struct AcceptedWrite {
    pub(super) answer: Answer,
    pub(super) slot: Arc<Slot>,
    /// The tickets that must be durable before the client is answered.
    pub(super) tickets: [Option<journal::Ticket>; 2],
}

/// A write whose answer is pending.
enum PendingWrite {
    /// Until it is durable.
    Accepted(AcceptedWrite),
    /// Until its mailbox is loaded and it is durable.
    Deferred(Arc<Later<WriteOutcome>>),
}

impl From<(ErrorCode, String)> for Refusal {
    fn from((code, message): (ErrorCode, String)) -> Self {
        Self {
            code,
            message,
            retry_after_ms: 0,
        }
    }
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Self {
        <(ErrorCode, String)>::from(error).into()
    }
}

impl From<Overloaded> for Refusal {
    fn from(overloaded: Overloaded) -> Self {
        Self {
            code: ErrorCode::Busy,
            message: overloaded.to_string(),
            retry_after_ms: Overloaded::RETRY_MS,
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self {
            code: ErrorCode::Busy,
            message: refused.to_string(),
            retry_after_ms: FULL_RETRY_MS,
        }
    }
}

impl Turn<'_> {
    /// Writes a message to a mailbox. It is acknowledged once it is on disk.
    pub(crate) fn write_to_disk(
        &mut self,
        route: u16,
        tag: Ticket,
        key: Option<Key>,
        message: Message<'_>,
    ) {
        let size = message.size();
        match self.try_write_to_disk(route, key, message) {
            Ok(written) => {
                self.local.tally.count(Counter::Writes);
                self.local.tally.add(Counter::Bytes, size);
                match written {
                    PendingWrite::Accepted(taken) => {
                        self.local.answers.push(taken.waiting(tag), size)
                    }
                    PendingWrite::Deferred(later) => {
                        self.local.answers.push_later(tag, later, size)
                    }
                }
            }
            Err(refusal) => self.fail(tag, refusal.as_failure()),
        }
    }

    fn try_write_to_disk(
        &mut self,
        route: u16,
        key: Option<Key>,
        message: Message<'_>,
    ) -> Result<PendingWrite, Refusal> {
        let inner = self.inner;
        let Some(store) = &inner.store else {
            let message = "this node has no storage: write with durability=memory".to_owned();
            return Err((ErrorCode::Unsupported, message).into());
        };
        let now_ms = self.unix_ms();
        let Local { routes, round, .. } = &mut *self.local;
        let bound = lookup(routes, route)?;
        check_name(bound.name, bound.cast)?;
        // The locks taken below come before the table in the lock order.
        self.table = None;
        let ttl_ms = store.ttl_ms(key.map_or(0, |key| key.ttl_ms));
        let write = Write {
            id: key.map(|key| WriteId(key.id)),
            expires_ms: now_ms.saturating_add(ttl_ms),
            sender: &self.peer.source,
            method: bound.method,
            metadata: message.metadata,
            body: message.body,
        };
        let mut bytes = Vec::with_capacity(message.body.len() + message.metadata.len() + 96);
        write.encode(&mut bytes);
        let base = bound.name.base();
        let written = store.with_mailbox(inner, base, |slot, state| {
            let round = round.get_or_insert_with(|| store.journal.round());
            store.write(inner, slot, state, &write, &bytes, round)
        })?;
        match written {
            Some(kept) => Ok(PendingWrite::Accepted(kept?)),
            None => Ok(PendingWrite::Deferred(store.defer(inner, base, bytes)?)),
        }
    }
}

impl AcceptedWrite {
    /// Returns the entry for the connection's queue of answers.
    pub(super) fn waiting(self, tag: Ticket) -> Waiting {
        Waiting {
            tag,
            tickets: self.tickets,
            answer: self.answer,
            slot: Some(self.slot),
        }
    }
}

impl Store {
    fn ttl_ms(&self, asked_ms: u32) -> u64 {
        let longest_ms = u64::try_from(self.options.ttl.as_millis()).unwrap_or(u64::MAX);
        match asked_ms {
            0 => longest_ms,
            asked_ms => longest_ms.min(u64::from(asked_ms)),
        }
    }

    /// Executes a write that was queued with the mailbox.
    pub(super) fn write_now(
        &self,
        inner: &Inner,
        slot: &Arc<Slot>,
        state: &mut State,
        bytes: &[u8],
    ) -> WriteOutcome {
        let write = Write::decode(bytes).map_err(LoadError::from)?;
        let round = self.journal.round();
        self.write(inner, slot, state, &write, bytes, &round)
    }

    fn write(
        &self,
        inner: &Inner,
        slot: &Arc<Slot>,
        state: &mut State,
        write: &Write<'_>,
        bytes: &[u8],
        round: &Round,
    ) -> WriteOutcome {
        let now_ms = inner.ports.clock.unix_ms();
        let refused = |error| Refusal::from(refusal(&self.journal, error));
        let size = bytes.len() as u32;
        let expiry_ms = inner.expiry_ms();
        if let Accepted::Duplicate { offset } = state.mailbox.accept(write.id, size, expiry_ms)? {
            // The answer waits until the original is durable, at the latest with the mailbox's last
            // append.
            let answer = Answer::Stored {
                offset,
                is_duplicate: true,
            };
            inner.counters.count(Counter::Duplicates);
            let creation = state.location.and_then(|it| self.creation(it.stream));
            return Ok(AcceptedWrite {
                answer,
                slot: slot.clone(),
                tickets: [creation, state.stream.ticket],
            });
        }
        let location = match state.location {
            Some(location) => location,
            None => {
                self.check_names(Kind::Mailbox, &slot.name)?;
                let created = self.find_or_create(Kind::Mailbox, &slot.name, now_ms);
                *state.location.insert(created.map_err(refused)?)
            }
        };
        let mut guard = round.lock(location.shard, now_ms);
        let appended = guard.append(location.stream, None, record::WRITE, bytes);
        drop(guard);
        let appended = appended.map_err(refused)?;
        state.mailbox.written(::mailbox::Written {
            offset: appended.offset,
            id: write.id,
            sender: write.sender,
            size,
            expires_ms: write.expires_ms,
        });
        state.stream.push(appended, bytes.len());
        state.stream.span.count_write();
        let answer = Answer::Stored {
            offset: appended.offset,
            is_duplicate: false,
        };
        Ok(AcceptedWrite {
            answer,
            slot: slot.clone(),
            tickets: [self.creation(location.stream), Some(appended.ticket)],
        })
    }
}

/// Checks whether a route may lead to a mailbox.
fn check_name(name: &Name, cast: Cast) -> Result<(), (ErrorCode, String)> {
    if name.org() == SYSTEM_ORG {
        let message = format!("names of `{SYSTEM_ORG}/` belong to the node itself");
        return Err((ErrorCode::Denied, message));
    }
    if name.instance().is_some() {
        let message = format!(
            "a mailbox belongs to all instances of a name: write to `{}`, or use \
             durability=memory",
            name.base()
        );
        return Err((ErrorCode::InvalidArgument, message));
    }
    if cast != Cast::Any {
        let message =
            "a write to disk needs one receiver: bind the route with cast `any`".to_owned();
        return Err((ErrorCode::InvalidArgument, message));
    }
    Ok(())
}

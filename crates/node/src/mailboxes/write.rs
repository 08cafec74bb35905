//! Writes to mailboxes.

use std::sync::Arc;

use ::mailbox::record::{self, Write};
use ::mailbox::{Accepted, WriteId};
use journal::Round;
use model::{Name, SYSTEM_ORG};
use platform::{Counter, Durable, Later, Pending};
use store::{Kind, StorageError};

use super::Mailboxes;
use super::error::WriteError;
use super::mailbox::{Slot, State};
use super::restore::LoadError;
use crate::ports::Message;
use crate::route::{Cast, Route};
use crate::turn::Turn;

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
    pub const SIZE: u64 = 20;
}

/// A write that waits until its mailbox is loaded.
pub(super) struct Deferred {
    /// The encoded record.
    pub(super) bytes: Vec<u8>,
    /// The slot for the result.
    pub(super) later: Arc<Later<PendingWrite>>,
}

/// A write whose outcome is known once it is on disk.
pub(super) type PendingWrite = Pending<AcceptedWrite, WriteError>;

/// A write that a mailbox accepted.
pub struct AcceptedWrite {
    /// The offset in the mailbox.
    pub offset: u64,
    /// True if the write was a retry of a stored one.
    pub is_duplicate: bool,
    /// The mailbox, which can deliver the message now.
    pub(super) slot: Arc<Slot>,
}

impl Turn<'_> {
    /// Writes a message to a mailbox. The outcome is known once it is on disk, and what is returned
    /// beside it must be on disk, too, before it is reported. Pass the outcome to
    /// [`Turn::deliver_written`].
    pub fn write(
        &mut self,
        route: &Route,
        key: Option<Key>,
        message: Message<'_>,
    ) -> Result<(Pending<AcceptedWrite, WriteError>, Option<Durable>), WriteError> {
        let charge = self.admit_send(route)?;
        let size = message.size();
        let written = self.try_write(route, key, message)?;
        self.local.tally.count(Counter::Writes);
        self.local.tally.add(Counter::Bytes, size);
        Ok((written, charge))
    }

    fn try_write(
        &mut self,
        route: &Route,
        key: Option<Key>,
        message: Message<'_>,
    ) -> Result<PendingWrite, WriteError> {
        let mailboxes = self.inner.mailboxes().ok_or(WriteError::NoStorage)?;
        let now_ms = self.unix_ms();
        check_name(&route.name, route.cast)?;
        // The locks taken below come before the table in the lock order.
        self.table = None;
        let ttl_ms = mailboxes.ttl_ms(key.map_or(0, |key| key.ttl_ms));
        let write = Write {
            id: key.map(|key| WriteId(key.id)),
            expires_ms: now_ms.saturating_add(ttl_ms),
            sender: &self.peer.source,
            method: &route.method,
            metadata: message.metadata,
            body: message.body,
        };
        let mut bytes = Vec::with_capacity(message.body.len() + message.metadata.len() + 96);
        write.encode(&mut bytes);
        let base = route.name.base();
        let round = &mut self.local.round;
        let written = mailboxes.with_mailbox(base, |slot, state| {
            let round = round.get_or_insert_with(|| mailboxes.store.journal.round());
            mailboxes.write(slot, state, &write, &bytes, round)
        })?;
        match written {
            Some(written) => written,
            None => Ok(Pending::later(mailboxes.defer(base, bytes)?)),
        }
    }
}

impl Mailboxes {
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
        slot: &Arc<Slot>,
        state: &mut State,
        bytes: &[u8],
    ) -> PendingWrite {
        let decoded = Write::decode(bytes).map_err(LoadError::from);
        let written = decoded.map_err(WriteError::from).and_then(|write| {
            let round = self.store.journal.round();
            self.write(slot, state, &write, bytes, &round)
        });
        written.unwrap_or_else(|error| Pending::known(Err(error)))
    }

    fn write(
        &self,
        slot: &Arc<Slot>,
        state: &mut State,
        write: &Write<'_>,
        bytes: &[u8],
        round: &Round,
    ) -> Result<PendingWrite, WriteError> {
        let now_ms = self.platform.unix_ms();
        let refused = |error| StorageError::of_append(&self.store.journal, error);
        let size = bytes.len() as u32;
        let expiry_ms = self.platform.expiry_ms();
        if let Accepted::Duplicate { offset } = state.mailbox.accept(write.id, size, expiry_ms)? {
            // The answer waits until the original is durable, at the latest with the mailbox's last
            // append.
            self.platform.counters.count(Counter::Duplicates);
            let creation = state.location.and_then(|it| self.store.creation(it.stream));
            let accepted = AcceptedWrite {
                offset,
                is_duplicate: true,
                slot: slot.clone(),
            };
            let tickets = [creation, state.stream.ticket];
            return Ok(Pending::new(&self.store.journal, tickets, Ok(accepted)));
        }
        let location = match state.location {
            Some(location) => location,
            None => {
                self.store.check_names(Kind::Mailbox, &slot.name)?;
                let created = self.store.find_or_create(Kind::Mailbox, &slot.name, now_ms);
                *state.location.insert(created.map_err(refused)?)
            }
        };
        let mut guard = round.lock(location.shard, now_ms);
        let appended = guard.append(location.stream, None, record::WRITE, bytes);
        drop(guard);
        let appended = appended.map_err(refused)?;
        state.mailbox.written(::mailbox::NewMessage {
            offset: appended.offset,
            id: write.id,
            sender: write.sender,
            size,
            expires_ms: write.expires_ms,
        });
        state.stream.push(appended, bytes.len());
        state.stream.span.count_write();
        let accepted = AcceptedWrite {
            offset: appended.offset,
            is_duplicate: false,
            slot: slot.clone(),
        };
        let tickets = [self.store.creation(location.stream), Some(appended.ticket)];
        Ok(Pending::new(&self.store.journal, tickets, Ok(accepted)))
    }
}

/// Checks whether a route may lead to a mailbox.
fn check_name(name: &Name, cast: Cast) -> Result<(), WriteError> {
    if name.org() == SYSTEM_ORG {
        return Err(WriteError::SystemName);
    }
    if name.instance().is_some() {
        let base = name.base().to_owned();
        return Err(WriteError::Instance { base });
    }
    match cast {
        Cast::Any => Ok(()),
        Cast::All => Err(WriteError::NotOneReceiver),
    }
}

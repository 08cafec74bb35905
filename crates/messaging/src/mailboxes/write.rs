//! Writes to mailboxes.

use std::sync::Arc;

use journal::Round;
use mailbox::Accepted;
use mailbox::record::{self, Write};
use platform::{Counter, Durable, Pending};
use store::{AppendSize, Kind, StorageError};

use super::Mailboxes;
use super::error::{LoadError, WriteError};
use super::slot::{AcceptedWrite, PendingWrite, Slot, State};

impl Mailboxes {
    /// Returns the lifetime of a write that requests `requested_ms`; 0 requests the maximum.
    pub(crate) fn ttl_ms(&self, requested_ms: u32) -> u64 {
        let max_ms = u64::try_from(self.options.ttl.as_millis()).unwrap_or(u64::MAX);
        match requested_ms {
            0 => max_ms,
            requested_ms => max_ms.min(u64::from(requested_ms)),
        }
    }

    /// Writes a message to the mailbox `base`; `bytes` is the encoded write. The append belongs to
    /// `round`, unless the mailbox has to be loaded first.
    pub(crate) fn write(
        self: &Arc<Self>,
        base: &str,
        write: &Write<'_>,
        bytes: Vec<u8>,
        round: &mut Option<Round>,
    ) -> Result<PendingWrite, WriteError> {
        let written = self.with_mailbox(base, |slot, state| {
            let round = round.get_or_insert_with(|| self.store.journal.round());
            self.append(slot, state, write, &bytes, round)
        })?;
        match written {
            Some(written) => written,
            None => Ok(Pending::later(self.defer(base, bytes)?)),
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
            self.append(slot, state, &write, bytes, &round)
        });
        written.unwrap_or_else(|error| Pending::known(Err(error)))
    }

    fn append(
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
            let accepted = AcceptedWrite {
                offset,
                is_duplicate: true,
                slot: slot.clone(),
            };
            let durable = Durable::of_earlier(&self.store.journal, [state.stream.ticket, None]);
            return Ok(Pending::after(durable, accepted));
        }
        let lock = |shard| round.lock(shard, now_ms);
        let (mut guard, location) = match state.location {
            Some(location) => (lock(location.shard), location),
            None => {
                let name = &*slot.name;
                self.store.check_names(Kind::Mailbox, name)?;
                let size = AppendSize {
                    bytes: bytes.len(),
                    count: 1,
                };
                let (shard, names) = (self.store.shard_of(name), [(Kind::Mailbox, name)]);
                let locked = self.store.lock_or_create(shard, names, size, lock);
                let (guard, [location]) = locked.map_err(refused)?;
                (guard, *state.location.insert(location))
            }
        };
        let appended = guard.append(location.stream, None, record::WRITE, bytes);
        drop(guard);
        let appended = appended.map_err(refused)?;
        state.mailbox.written(mailbox::NewMessage {
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
        let ticket = Some(appended.ticket);
        Ok(Pending::new(&self.store.journal, ticket, Ok(accepted)))
    }
}

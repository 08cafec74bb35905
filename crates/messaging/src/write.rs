//! Writes of a client to the mailbox of a name.

use std::sync::Arc;

use mailbox::WriteId;
use mailbox::record::Write;
use model::{Name, SYSTEM_ORG};
use platform::{Counter, Durable, Pending};

use crate::mailboxes::{AcceptedWrite, WriteError};
use crate::outlet::Message;
use crate::route::{Cast, Route};
use crate::turn::Turn;

/// The key and the lifetime that a client gives to a write to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The id of the write, if it has one: a retry has the same id.
    pub id: Option<[u8; 16]>,
    /// Maximum lifetime in milliseconds; 0 for the node's maximum.
    pub ttl_ms: u32,
}

impl Key {
    /// Size of a key that counts towards the sender's window, in bytes.
    pub const SIZE: u64 = 20;
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
    ) -> Result<Pending<AcceptedWrite, WriteError>, WriteError> {
        let mailboxes = self.messaging.mailboxes().ok_or(WriteError::NoStorage)?;
        let now_ms = self.unix_ms();
        check_name(&route.name, route.cast)?;
        // The locks taken below come before the table in the lock order.
        self.table = None;
        let ttl_ms = mailboxes.ttl_ms(key.map_or(0, |key| key.ttl_ms));
        let write = Write {
            id: key.and_then(|key| key.id).map(WriteId),
            expires_ms: now_ms.saturating_add(ttl_ms),
            sender: &self.peer.source,
            method: &route.method,
            metadata: message.metadata,
            body: message.body,
        };
        let mut bytes = Vec::with_capacity(message.body.len() + message.metadata.len() + 96);
        write.encode(&mut bytes);
        mailboxes.write(route.name.base(), &write, bytes, &mut self.local.round)
    }

    /// Lets the mailbox of a durable write continue, at the end of the turn.
    pub fn deliver_written(&mut self, write: AcceptedWrite) {
        let written = &mut self.local.written;
        if !written.iter().any(|known| Arc::ptr_eq(known, &write.slot)) {
            written.push(write.slot);
        }
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

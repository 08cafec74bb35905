//! Writing to a mailbox.

use std::sync::Arc;

use ::mailbox::record::{self, Write};
use ::mailbox::{Accepted, Refused, WriteId, Written};
use journal::Round;
use model::{ErrorCode, Name};
use routing::Ticket;

use super::answers::{Answer, Waiting};
use super::directory::Kind;
use super::mailbox::{Slot, State};
use super::{Store, refusal};
use crate::connection::Local;
use crate::counters::Counter;
use crate::ports::{Failure, Message};
use crate::turn::{Cast, SYSTEM_ORG, Turn, lookup};

/// What a writer says of a write to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// What the writer calls it: a retry carries the same.
    pub id: [u8; 16],
    /// How long it may wait, in milliseconds; 0 for as long as the node lets it.
    pub ttl_ms: u32,
}

impl Key {
    /// Bytes it takes of a sender's window.
    pub(crate) const SIZE: u64 = 20;
}

/// After which pause another try makes sense when a mailbox is full.
const FULL_RETRY_MS: u32 = 1_000;

/// Why a write is refused.
struct Refusal {
    code: ErrorCode,
    message: String,
    retry_after_ms: u32,
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
    /// A message that is acknowledged once it is on disk.
    pub(crate) fn write_to_disk(
        &mut self,
        route: u16,
        tag: Ticket,
        key: Option<Key>,
        message: Message<'_>,
    ) {
        match self.try_write_to_disk(route, tag, key, message) {
            Ok(waiting) => {
                self.local.tally.count(Counter::Writes);
                self.local.tally.add(Counter::Bytes, message.size());
                self.local.answers.push(waiting, message.size());
            }
            Err(refusal) => {
                let failure = Failure {
                    retry_after_ms: refusal.retry_after_ms,
                    ..Failure::new(refusal.code, &refusal.message)
                };
                self.fail(tag, failure);
            }
        }
    }

    fn try_write_to_disk(
        &mut self,
        route: u16,
        tag: Ticket,
        key: Option<Key>,
        message: Message<'_>,
    ) -> Result<Waiting, Refusal> {
        let inner = self.inner;
        let Some(store) = &inner.store else {
            let message = "this node keeps nothing: write with durability=memory".to_owned();
            return Err((ErrorCode::Unsupported, message).into());
        };
        let now_ms = self.unix_ms();
        let Local { routes, round, .. } = &mut *self.local;
        let bound = lookup(routes, route)?;
        check_name(bound.name, bound.cast)?;
        // What is locked below comes before the table.
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
        let written = store.open_mailbox(inner, base, |slot, state| {
            let round = round.get_or_insert_with(|| store.journal.round());
            store.write(slot, state, &write, &bytes, round, now_ms)
        });
        let (answer, slot, journal_ticket, creation) = written.map_err(<(_, String)>::from)??;
        if matches!(answer, Answer::Stored { is_duplicate, .. } if is_duplicate) {
            self.local.tally.count(Counter::Duplicates);
        }
        Ok(Waiting {
            tag,
            tickets: [creation, journal_ticket],
            answer,
            slot: Some(slot),
        })
    }
}

type Taken = (
    Answer,
    Arc<Slot>,
    Option<journal::Ticket>,
    Option<journal::Ticket>,
);

impl Store {
    fn ttl_ms(&self, asked_ms: u32) -> u64 {
        let longest_ms = u64::try_from(self.options.ttl.as_millis()).unwrap_or(u64::MAX);
        match asked_ms {
            0 => longest_ms,
            asked_ms => longest_ms.min(u64::from(asked_ms)),
        }
    }

    fn write(
        &self,
        slot: &Arc<Slot>,
        state: &mut State,
        write: &Write<'_>,
        bytes: &[u8],
        round: &Round,
        now_ms: u64,
    ) -> Result<Taken, Refusal> {
        let refused = |error| Refusal::from(refusal(&self.journal, error));
        let size = bytes.len() as u32;
        if let Accepted::Duplicate { offset } = state.mailbox.accept(write.id, size, now_ms)? {
            // Told when the original is durable: with the mailbox's last append, at the latest.
            let answer = Answer::Stored {
                offset,
                is_duplicate: true,
            };
            let creation = state.location.and_then(|it| self.creation(it.stream));
            return Ok((answer, slot.clone(), state.stream.ticket, creation));
        }
        let location = match state.location {
            Some(location) => location,
            None => {
                let created = self.find_or_create(Kind::Mailbox, &slot.name, now_ms);
                *state.location.insert(created.map_err(refused)?)
            }
        };
        let mut guard = round.lock(location.shard, now_ms);
        let appended = guard.append(location.stream, None, record::WRITE, bytes);
        drop(guard);
        let appended = appended.map_err(refused)?;
        state.mailbox.written(Written {
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
        let creation = self.creation(location.stream);
        Ok((answer, slot.clone(), Some(appended.ticket), creation))
    }
}

/// Whether there can be a mailbox for what a route says.
fn check_name(name: &Name, cast: Cast) -> Result<(), (ErrorCode, String)> {
    if name.org() == SYSTEM_ORG {
        let message = format!("names of `{SYSTEM_ORG}/` belong to the node itself");
        return Err((ErrorCode::Denied, message));
    }
    if name.instance().is_some() {
        let message = format!(
            "a mailbox belongs to all instances: write to `{}`, or with durability=memory",
            name.base()
        );
        return Err((ErrorCode::InvalidArgument, message));
    }
    if cast != Cast::Any {
        let message = "a write on disk goes to one: bind the route with cast `any`".to_owned();
        return Err((ErrorCode::InvalidArgument, message));
    }
    Ok(())
}

//! A mailbox that is loaded: the engine, its stream, and what of it is on its way to the disk.

use std::collections::HashMap;
use std::sync::Arc;

use journal::{AppendError, Journal, Ticket};
use mailbox::Mailbox;
use mailbox::record::{self, Note};
use model::Name;
use parking_lot::Mutex;
use routing::{ConnectionId, Target};

use super::directory::Location;

/// Bytes of records after which the ids of the newest writes are repeated, so that what lies
/// before can be forgotten.
const IDS_AFTER_BYTES: u64 = 1 << 20;

/// Writes after which they are.
const IDS_AFTER_WRITES: u64 = 1024;

/// Methods that are remembered; more than that are made anew.
const METHODS_MAX: usize = 64;

/// A subscriber: an instance at a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) connection: ConnectionId,
    pub(crate) name: Name,
}

/// A mailbox that somebody uses.
pub(crate) struct Slot {
    /// `org/namespace/agent`.
    pub(crate) name: Arc<str>,
    pub(super) stage: Mutex<Stage>,
}

/// ## New => Loaded => Gone
pub(super) enum Stage {
    /// Whoever comes first loads it.
    New,
    Loaded(Box<State>),
    /// It was let go: it is to be looked up again.
    Gone,
}

pub(super) struct State {
    pub(super) mailbox: Mailbox<Instance>,
    /// `None` until something is written.
    pub(super) location: Option<Location>,
    /// The name in the routing table.
    pub(super) target: Target,
    pub(super) stream: Progress,
    pub(super) methods: Methods,
    pub(super) used_ns: u64,
}

/// How the mailbox's stream goes on.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Its oldest record.
    pub(super) start: u64,
    /// Writes since the ids were repeated.
    pub(super) writes: u64,
    /// Bytes since then.
    pub(super) bytes: u64,
    /// The last append.
    pub(super) ticket: Option<Ticket>,
}

/// Methods that messages are for: subscribers' routes are known by them, so that each is there once.
#[derive(Default)]
pub(super) struct Methods(HashMap<Box<str>, Arc<str>>);

impl Methods {
    pub(super) fn get(&mut self, method: &str) -> Arc<str> {
        if let Some(found) = self.0.get(method) {
            return found.clone();
        }
        if self.0.len() >= METHODS_MAX {
            self.0.clear();
        }
        let made: Arc<str> = method.into();
        self.0.insert(method.into(), made.clone());
        made
    }
}

impl State {
    /// Appends what has happened, and forgets what nobody needs. What cannot be appended now is
    /// lost: it is about messages that will be handed out once more.
    pub(super) fn note(&mut self, journal: &Journal, now_ms: u64) {
        let notes = self.mailbox.take_notes();
        let Some(location) = self.location else {
            return;
        };
        if notes.is_empty() && !self.stream.is_long() {
            return;
        }
        // Whoever cannot append is told so when he writes.
        let _ = self.append_notes(journal, location, &notes, now_ms);
    }

    fn append_notes(
        &mut self,
        journal: &Journal,
        location: Location,
        notes: &[Note],
        now_ms: u64,
    ) -> Result<(), AppendError> {
        let mut bytes = Vec::new();
        let mut guard = journal.lock(location.shard, now_ms);
        if !notes.is_empty() {
            record::encode_notes(notes, &mut bytes);
            let appended = guard.append(location.stream, None, record::NOTES, &bytes)?;
            self.stream.ticket = Some(appended.ticket);
            self.stream.bytes += bytes.len() as u64;
        }
        let oldest = self.mailbox.oldest();
        if self.stream.is_long() && oldest.is_none_or(|oldest| oldest > self.stream.start) {
            bytes.clear();
            record::encode_ids(self.mailbox.ids(), &mut bytes);
            let appended = guard.append(location.stream, None, record::IDS, &bytes)?;
            let start = oldest.map_or(appended.offset, |oldest| oldest.min(appended.offset));
            guard.trim(location.stream, start)?;
            self.stream = Progress {
                start,
                ticket: Some(appended.ticket),
                ..Progress::default()
            };
        }
        Ok(())
    }
}

impl Progress {
    /// Whether enough was appended for the ids to be worth repeating.
    fn is_long(&self) -> bool {
        self.writes >= IDS_AFTER_WRITES || self.bytes >= IDS_AFTER_BYTES
    }
}

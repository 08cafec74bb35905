//! A loaded mailbox: its engine, its stream, and its pending writes.

use std::collections::HashMap;
use std::sync::Arc;

use journal::{Appended, Record, Ticket};
use mailbox::{Mailbox, Span};
use model::Name;
use parking_lot::{Condvar, MappedMutexGuard, Mutex, MutexGuard};
use platform::{Later, Pending};
use routing::{ConnectionId, Target};
use store::Location;

use super::error::WriteError;
use super::pull::Pulls;

/// Maximum number of cached methods; the cache is cleared when it is full.
const METHODS_MAX: usize = 64;

/// A receiver of deliveries: an instance on a connection, or an instance that takes messages, whose
/// connection is [`NOBODY`](super::hand_out::NOBODY).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) connection: ConnectionId,
    pub(crate) name: Name,
}

/// A mailbox that is loaded or being loaded.
pub(crate) struct Slot {
    /// `org/namespace/agent`.
    pub(crate) name: Arc<str>,
    pub(super) stage: Mutex<Stage>,
    /// Signalled when loading ends.
    pub(super) loaded: Condvar,
}

impl Slot {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            stage: Mutex::new(Stage::New),
            loaded: Condvar::new(),
        }
    }

    /// Locks the mailbox; `None` if it is not loaded.
    pub(super) fn lock_loaded(&self) -> Option<MappedMutexGuard<'_, State>> {
        let state = MutexGuard::try_map(self.stage.lock(), |stage| match stage {
            Stage::Loaded(state) => Some(&mut **state),
            Stage::New | Stage::Loading(_) | Stage::Gone => None,
        });
        state.ok()
    }
}

/// ## New => (Loaded | Loading) · Loading => (Loaded | New | Gone) · Loaded => Gone
pub(super) enum Stage {
    /// Not loaded; the first user loads it.
    New,
    /// Being loaded, with the queued writes, in order.
    Loading(Vec<Deferred>),
    Loaded(Box<State>),
    /// Unloaded: it must be looked up again.
    Gone,
}

pub(super) struct State {
    pub(super) mailbox: Mailbox<Instance>,
    /// The stream's location; `None` until the first write.
    pub(super) location: Option<Location>,
    /// The name in the routing table.
    pub(super) target: Target,
    pub(super) stream: Progress,
    pub(super) methods: Methods,
    pub(super) fetched: Fetched,
    pub(super) pulls: Pulls,
    pub(super) used_ns: u64,
}

/// The records read from disk, and the record to read.
#[derive(Default)]
pub(super) struct Fetched {
    /// Records in order, with their own copies of the bytes.
    pub(super) records: Vec<Record>,
    /// The offset of a record that was needed and is neither here nor in memory.
    pub(super) missing: Option<u64>,
    /// True while a read is in progress.
    pub(super) is_under_way: bool,
}

/// The progress of the mailbox's stream.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The records of the stream, from the oldest on.
    pub(super) span: Span,
    /// The last append.
    pub(super) ticket: Option<Ticket>,
}

impl Progress {
    /// Records an append of that size.
    pub(super) fn push(&mut self, appended: Appended, size: usize) {
        self.span.push(appended.offset, size);
        self.ticket = Some(appended.ticket);
    }
}

/// The methods of messages. Subscribers' routes refer to them, so each method has one copy.
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
        let shared: Arc<str> = method.into();
        self.0.insert(method.into(), shared.clone());
        shared
    }
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
    pub(crate) slot: Arc<Slot>,
}

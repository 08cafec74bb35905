//! A mailbox that is loaded: the engine, its stream, and what of it is on its way to the disk.

use std::collections::HashMap;
use std::sync::Arc;

use journal::{Appended, Record, Ticket};
use mailbox::{Mailbox, Span};
use model::Name;
use parking_lot::{Condvar, Mutex};
use routing::{ConnectionId, Target};

use super::directory::Location;
use super::write::Deferred;

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
    /// Told when it is not being loaded any more.
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
}

/// ## New => (Loaded | Loading) · Loading => (Loaded | New | Gone) · Loaded => Gone
pub(super) enum Stage {
    /// Whoever comes first loads it, or has it loaded.
    New,
    /// It is being read, and these writes wait for that, in order.
    Loading(Vec<Deferred>),
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
    pub(super) fetched: Fetched,
    pub(super) used_ns: u64,
}

/// What was fetched from the disk, and is to be.
#[derive(Default)]
pub(super) struct Fetched {
    /// Records in order; their bytes are their own.
    pub(super) records: Vec<Record>,
    /// The offset of a record that was needed and neither here nor in memory.
    pub(super) missing: Option<u64>,
    /// Somebody is fetching.
    pub(super) is_under_way: bool,
}

/// How the mailbox's stream goes on.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Its records from the oldest on.
    pub(super) span: Span,
    /// The last append.
    pub(super) ticket: Option<Ticket>,
}

impl Progress {
    /// A record of that size was appended.
    pub(super) fn push(&mut self, appended: Appended, size: usize) {
        self.span.push(appended.offset, size);
        self.ticket = Some(appended.ticket);
    }
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

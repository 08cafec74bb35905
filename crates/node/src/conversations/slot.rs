//! The conversations that somebody uses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::task::Waker;

use conversations::Conversation;
use journal::{StreamId, Ticket};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::Options;
use super::draft_log::ShardLog;
use super::drafts::{Assemble, Open};
use super::unsynced::Unsynced;
use crate::ports::archive::Archive;
use crate::store::Location;

/// Those that are loaded, and what they share.
pub(crate) struct Rooms {
    pub(super) options: Options,
    /// By name; ordered, so that they are looked after in the same order in every run.
    pub(super) loaded: Mutex<BTreeMap<Arc<str>, Arc<Slot>>>,
    /// When they were last looked after.
    pub(super) swept_ns: AtomicU64,
    /// Those who watch.
    pub(super) watchers: AtomicUsize,
    /// Counts them over time: each has a number.
    pub(super) watches: AtomicU64,
    /// Those in which something is being streamed.
    pub(super) drafting: Mutex<BTreeMap<Arc<str>, Arc<Slot>>>,
    /// The log of drafts of each shard. Locked under a guard of the journal.
    pub(super) logs: Vec<Mutex<ShardLog>>,
    /// Makes messages of chunks, once somebody can.
    pub(super) assembler: OnceLock<Arc<dyn Assemble>>,
    /// Where messages are that were trimmed, if anywhere.
    pub(super) archive: OnceLock<Arc<dyn Archive>>,
}

impl Rooms {
    pub(crate) fn new(options: Options, shard_count: u16) -> Self {
        Self {
            options,
            loaded: Mutex::default(),
            swept_ns: AtomicU64::new(0),
            watchers: AtomicUsize::new(0),
            watches: AtomicU64::new(0),
            drafting: Mutex::default(),
            logs: (0..shard_count).map(|_| Mutex::default()).collect(),
            assembler: OnceLock::new(),
            archive: OnceLock::new(),
        }
    }

    /// Conversations that are loaded.
    pub(crate) fn loaded_count(&self) -> usize {
        self.loaded.lock().len()
    }
}

/// A place for one conversation.
pub(crate) struct Slot {
    /// `org/namespace/x`.
    pub(super) name: Arc<str>,
    pub(super) stage: Mutex<Stage>,
}

/// `New => Loaded => Gone`. Whoever meets a slot that is gone looks the name up again.
pub(super) enum Stage {
    New,
    Loaded(Box<Room>),
    Gone,
}

/// A conversation in memory.
pub(super) struct Room {
    pub(super) engine: Conversation,
    /// Where it is, once there is anything of it.
    pub(super) location: Option<Location>,
    /// The event partition, once it was looked up.
    pub(super) events: Option<StreamId>,
    /// The newest thing that was written of it is durable when this is.
    pub(super) ticket: Option<Ticket>,
    pub(super) unsynced: Unsynced,
    /// Those who watch it.
    pub(super) watchers: usize,
    /// Those of them who wait, by number.
    pub(super) watching: BTreeMap<u64, Waker>,
    /// What is being streamed.
    pub(super) drafts: Vec<Open>,
    /// When the newest message that is kept was appended, in milliseconds since 1970-01-01 UTC; 0 for
    /// none.
    pub(super) said_ms: u64,
    /// When somebody used it last.
    pub(super) used_ns: u64,
}

impl Slot {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            stage: Mutex::new(Stage::New),
        }
    }

    /// The conversation, if it is loaded.
    pub(super) fn room(&self) -> Option<RoomGuard<'_>> {
        loaded(self.stage.lock())
    }
}

pub(super) type RoomGuard<'a> = MappedMutexGuard<'a, Room>;

pub(super) fn loaded(stage: MutexGuard<'_, Stage>) -> Option<RoomGuard<'_>> {
    let room = MutexGuard::try_map(stage, |stage| match stage {
        Stage::Loaded(room) => Some(&mut **room),
        Stage::New | Stage::Gone => None,
    });
    room.ok()
}

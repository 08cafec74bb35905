//! Loaded conversations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::task::Waker;

use conversations::Conversation;
use journal::{Journal, StreamId, Ticket};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use platform::NameMap;
use store::Location;

use super::Options;
use super::open_draft::{Assemble, OpenDraft};
use super::shard_log::ShardLog;
use super::unsynced::UnsyncedRecords;
use crate::agent_changes::AgentChanges;
use crate::archive::Archive;

/// The loaded conversations, and their shared state.
pub(crate) struct Rooms {
    pub(super) options: Options,
    /// The slots by name.
    pub(super) loaded: NameMap<Slot>,
    /// The time of the last sweep.
    pub(super) swept_ns: AtomicU64,
    /// Current number of watchers.
    pub(super) watchers: AtomicUsize,
    /// Number of watches ever made, which numbers the next one.
    pub(super) watches: AtomicU64,
    /// The conversations with open drafts.
    pub(super) drafting: Mutex<BTreeMap<Arc<str>, Arc<Slot>>>,
    /// The log of drafts of each shard. Locked under a guard of the journal.
    pub(super) logs: Vec<Mutex<ShardLog>>,
    /// The assembler of messages from chunks; without it there are no drafts.
    pub(super) assembler: Option<Arc<dyn Assemble>>,
    /// The archive of trimmed messages, if any.
    pub(super) archive: Option<Arc<dyn Archive>>,
    /// Number of interrupted drafts that became messages when the node was opened.
    pub(super) drafts_recovered: AtomicUsize,
    /// The conversations with changes for their agents.
    pub(super) agent_changes: AgentChanges,
}

impl Rooms {
    /// Returns the conversations of a node; none is loaded yet.
    pub(crate) fn new(
        options: Options,
        journal: &Journal,
        assembler: Option<Arc<dyn Assemble>>,
        archive: Option<Arc<dyn Archive>>,
    ) -> Self {
        let shard_count = journal.shard_count();
        Self {
            options: options.fitting(journal),
            loaded: NameMap::default(),
            swept_ns: AtomicU64::new(0),
            watchers: AtomicUsize::new(0),
            watches: AtomicU64::new(0),
            drafting: Mutex::default(),
            logs: (0..shard_count).map(|_| Mutex::default()).collect(),
            assembler,
            archive,
            drafts_recovered: AtomicUsize::new(0),
            agent_changes: AgentChanges::default(),
        }
    }

    /// Returns the number of loaded conversations.
    pub(crate) fn loaded_count(&self) -> usize {
        self.loaded.len()
    }
}

/// The slot of one conversation.
pub(crate) struct Slot {
    /// `org/namespace/x`.
    pub(super) name: Arc<str>,
    pub(super) stage: Mutex<Stage>,
}

/// `New => Loaded => Gone`. A lookup that finds a slot gone must look the name up again.
pub(super) enum Stage {
    New,
    Loaded(Box<Room>),
    Gone,
}

/// A loaded conversation.
pub(super) struct Room {
    pub(super) engine: Conversation,
    /// The conversation's stream, once it exists.
    pub(super) location: Option<Location>,
    /// The event partition, once it was looked up.
    pub(super) events: Option<StreamId>,
    /// The ticket of the newest write. It must be durable before an answer that depends on the
    /// current state.
    pub(super) ticket: Option<Ticket>,
    pub(super) unsynced: UnsyncedRecords,
    /// Current number of watchers of the conversation.
    pub(super) watchers: usize,
    /// The wakers of waiting watchers, by number.
    pub(super) watching: BTreeMap<u64, Waker>,
    /// The open drafts.
    pub(super) drafts: Vec<OpenDraft>,
    /// Time of the append of the newest stored message, in milliseconds since 1970-01-01 UTC; 0 for
    /// none.
    pub(super) said_ms: u64,
    /// Time of the last use.
    pub(super) used_ns: u64,
}

impl Slot {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            stage: Mutex::new(Stage::New),
        }
    }

    /// Returns the conversation, if it is loaded.
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

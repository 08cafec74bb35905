//! The storage of a node: mailboxes, raw streams and conversations in the journal.
//!
//! The journal identifies streams by number; the [`directory`] maps names to numbers. A mailbox in
//! use is *loaded*: its engine is built from its stream, and unloaded after a period without use.
//! Clients get no answer before the journal reports it as durable.
//!
//! Lock order: the set of loaded mailboxes, a mailbox, the idle mailboxes, the directory, then the
//! journal or the routing table, then a client's lane.

mod admin;
mod backlog;
mod directory;
mod error;
mod follow;
mod hand_out;
mod idle;
mod load;
mod lookup;
mod mailbox;
mod raw;
mod restore;
mod settle;
mod streams;
mod tend;
mod tidy;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ::mailbox::record::Malformed;
use journal::{
    AppendError, Journal, ReadError, ReadLimit, Record, ShardId, Status, StreamId, Ticket,
};
use model::ErrorCode;
use parking_lot::{Mutex, RwLock};

use crate::conversations::{Assemble, Rooms, state_of};
use crate::ports::archive::Archive;
use crate::webhooks::Touched;

pub use admin::{AdminError, MailboxView, MessageView, Part, Stored, StreamView};
use backlog::Backlogs;
pub use backlog::{Backlog, MailboxBacklog};
pub use directory::{DIRECTORY, NamedStream};
use directory::{Directory, Entry};
pub(crate) use directory::{Kind, Location};
pub use error::{StorageError, StreamError, WriteError};
pub use follow::StreamFollower;
pub(crate) use hand_out::Outcome;
use idle::Idle;
pub(crate) use mailbox::Slot;
pub use raw::{AppendedRecords, Range, StoredRecord, Stream, StreamExtract};
pub(crate) use restore::Reach;
pub use streams::StreamRetention;
pub use write::{AcceptedWrite, Key};

/// The options of the storage.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum number of unacknowledged messages per mailbox.
    pub messages_max: usize,
    /// Maximum size of the unacknowledged messages per mailbox, in bytes.
    pub size_max: u64,
    /// Maximum age of a message.
    pub ttl: Duration,
    /// Time in which a subscriber must acknowledge a message.
    pub ack_timeout: Duration,
    /// Maximum number of messages of one mailbox in delivery at the same time.
    pub in_flight_max: usize,
    /// Number of deliveries after which an unacknowledged message becomes a dead letter; 0 for no
    /// limit.
    pub deliveries_max: u32,
    /// Maximum number of mailboxes, streams and conversations per namespace. It also limits the
    /// partitions of all topics, those of deleted topics included.
    pub names_per_namespace_max: usize,
    /// The options of conversations.
    pub conversations: crate::conversations::Options,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            messages_max: 100_000,
            size_max: 64 << 20,
            ttl: Duration::from_secs(7 * 24 * 3600),
            ack_timeout: Duration::from_secs(30),
            in_flight_max: 256,
            deliveries_max: 0,
            names_per_namespace_max: 1_000_000,
            conversations: crate::conversations::Options::default(),
        }
    }
}

/// The reason why the storage cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory cannot be read.
    #[error("the directory of streams cannot be read: {0}")]
    Read(#[from] ReadError),
    /// The directory has an invalid record.
    #[error("the directory of streams has an invalid record: {0}")]
    Malformed(#[from] Malformed),
}

/// The storage of a node.
pub(crate) struct Store {
    pub(crate) journal: Arc<Journal>,
    options: Options,
    directory: RwLock<Directory>,
    /// Streams whose directory entry may not be durable yet.
    creating: Mutex<BTreeMap<StreamId, Ticket>>,
    creating_count: AtomicUsize,
    /// The loaded mailboxes by name; ordered, so that sweeps process them in the same order in
    /// every run.
    loaded: Mutex<BTreeMap<Arc<str>, Arc<Slot>>>,
    idle: Mutex<Idle>,
    backlogs: Backlogs,
    /// Number of new names refused because their namespace has too many.
    pub(crate) names_refused: AtomicU64,
    /// The conversations.
    pub(crate) rooms: Rooms,
    /// The conversations with changes for their agents.
    pub(crate) touched: Touched,
}

/// Size of one read of the directory.
const CHUNK: ReadLimit = ReadLimit {
    records: 10_000,
    bytes: 1 << 20,
};

/// Size of one read by [`Store::each_record`].
const EACH: ReadLimit = ReadLimit {
    records: 1_024,
    bytes: 1 << 20,
};

impl Store {
    /// Opens the storage and reads the directory.
    pub(crate) fn open(
        journal: Arc<Journal>,
        options: Options,
        assembler: Option<Arc<dyn Assemble>>,
        archive: Option<Arc<dyn Archive>>,
    ) -> Result<Self, StoreError> {
        let mut directory = Directory::default();
        loop {
            let from = directory.len() as u64;
            let read = journal.read(directory::SHARD, directory::STREAM, from, CHUNK)?;
            if read.records.is_empty() {
                break;
            }
            for record in &read.records {
                directory.push(Entry::decode(record.tag, &record.payload)?);
            }
        }
        Ok(Self {
            touched: Touched::default(),
            rooms: Rooms::new(options.conversations, &journal, assembler, archive),
            journal,
            options,
            directory: RwLock::new(directory),
            creating: Mutex::default(),
            creating_count: AtomicUsize::new(0),
            loaded: Mutex::default(),
            idle: Mutex::default(),
            backlogs: Backlogs::default(),
            names_refused: AtomicU64::new(0),
        })
    }

    pub(crate) fn find(&self, kind: Kind, name: &str) -> Option<Location> {
        self.directory.read().find(kind, name)
    }

    /// Returns the stream with that name, creating it if necessary.
    pub(crate) fn find_or_create(
        &self,
        kind: Kind,
        name: &str,
        now_ms: u64,
    ) -> Result<Location, AppendError> {
        self.find_or_create_in(kind, name, self.shard_of(name), now_ms)
    }

    /// Returns the shard in which a new name is created, unless another shard is requested.
    pub(crate) fn shard_of(&self, name: &str) -> ShardId {
        directory::shard_of(name, self.journal.shard_count())
    }

    /// Checks whether the namespace of a name may have another name. Existing names pass.
    pub(crate) fn check_names(&self, kind: Kind, name: &str) -> Result<(), StorageError> {
        let limit = self.options.names_per_namespace_max;
        let directory = self.directory.read();
        if directory.find(kind, name).is_some() || directory.namespace_name_count(name) < limit {
            return Ok(());
        }
        self.names_refused.fetch_add(1, Ordering::Relaxed);
        let namespace = directory::namespace_of(name).to_owned();
        Err(StorageError::Names { namespace, limit })
    }

    /// Whether topics may have had so many partitions: like a namespace, they have a limit on the names
    /// that were ever made. The limit, if not.
    pub(crate) fn check_partitions(&self, count: usize) -> Result<(), usize> {
        let limit = self.options.names_per_namespace_max;
        if count <= limit {
            return Ok(());
        }
        self.names_refused.fetch_add(1, Ordering::Relaxed);
        Err(limit)
    }

    /// The same, made in that shard.
    pub(crate) fn find_or_create_in(
        &self,
        kind: Kind,
        name: &str,
        shard: ShardId,
        now_ms: u64,
    ) -> Result<Location, AppendError> {
        if let Some(found) = self.find(kind, name) {
            return Ok(found);
        }
        let mut directory = self.directory.write();
        if let Some(found) = directory.find(kind, name) {
            return Ok(found);
        }
        loop {
            let stream = StreamId(directory.len() as u64 + 1);
            // A crash may have kept the records of a stream but lost its directory entry. These
            // records were never acknowledged, and the stream's number is not reused.
            let is_taken = self.is_used(shard, stream);
            let entry = Entry {
                kind: if is_taken { Kind::Void } else { kind },
                shard,
                name: if is_taken { "" } else { name },
            };
            let ticket = self.enter(&directory, entry, now_ms)?;
            let location = directory.push(entry);
            if !is_taken {
                self.creating.lock().insert(location.stream, ticket);
                self.creating_count.fetch_add(1, Ordering::Release);
                return Ok(location);
            }
        }
    }

    fn is_used(&self, shard: ShardId, stream: StreamId) -> bool {
        [stream, state_of(stream)].into_iter().any(|stream| {
            let state = self.journal.stream(shard, stream);
            state.is_some_and(|state| state.next > 0)
        })
    }

    fn enter(
        &self,
        directory: &Directory,
        entry: Entry<'_>,
        now_ms: u64,
    ) -> Result<Ticket, AppendError> {
        let expected = Some(directory.len() as u64);
        let mut guard = self.journal.lock(directory::SHARD, now_ms);
        let tag = entry.kind as u8;
        let appended = guard.append(directory::STREAM, expected, tag, &entry.encode())?;
        Ok(appended.ticket)
    }

    /// Returns the ticket of a stream's creation, if it is not durable yet. Until then the stream
    /// must not be reported.
    pub(crate) fn creation(&self, stream: StreamId) -> Option<Ticket> {
        if self.creating_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut creating = self.creating.lock();
        // Directory entries become durable in the order of stream numbers.
        while let Some(oldest) = creating.first_entry()
            && self.journal.status(*oldest.get()) == Status::Durable
        {
            oldest.remove();
        }
        self.creating_count.store(creating.len(), Ordering::Release);
        creating.get(&stream).copied()
    }

    /// Passes every durable record of a stream to `take`, oldest first. Records that are trimmed
    /// meanwhile are skipped: their replacement was written after them.
    pub(crate) fn each_record<E: From<ReadError>>(
        &self,
        location: Location,
        take: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_record_within(Reach::Disk, location, take)
            .map(drop)
    }

    /// Like [`Store::each_record`], as far as records are within reach; returns `None` if not all
    /// are.
    pub(crate) fn each_record_within<E: From<ReadError>>(
        &self,
        reach: Reach,
        location: Location,
        mut take: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<Option<()>, E> {
        let Location { shard, stream } = location;
        let mut from = self.journal.stream(shard, stream).map_or(0, |it| it.start);
        loop {
            let read = match self.read_within(reach, location, from, EACH) {
                Err(ReadError::Trimmed { start }) => {
                    from = start;
                    continue;
                }
                read => read?,
            };
            let Some(read) = read else {
                return Ok(None);
            };
            let Some(last) = read.records.last() else {
                return Ok(Some(()));
            };
            from = last.offset + 1;
            read.records.iter().try_for_each(&mut take)?;
        }
    }

    /// Returns every stream of a kind.
    pub(crate) fn all(&self, kind: Kind) -> Vec<(String, Location)> {
        let directory = self.directory.read();
        let all = directory.iter(kind);
        all.map(|(name, at)| (name.to_owned(), at)).collect()
    }

    /// Returns the number of named streams.
    pub(crate) fn stream_count(&self) -> usize {
        self.directory.read().len()
    }

    /// Returns the number of loaded mailboxes.
    fn loaded_count(&self) -> usize {
        self.loaded.lock().len()
    }
}

/// Returns an append error as a code and a text for the client.
pub(crate) fn refusal(journal: &Journal, error: AppendError) -> (ErrorCode, String) {
    StorageError::of_append(journal, error).into()
}

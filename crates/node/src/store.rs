//! What is kept: mailboxes, raw streams and conversations, in the journal.
//!
//! The journal knows streams by number; the [`directory`] knows their names. A mailbox that somebody
//! uses is *loaded*: its engine is made from its stream, and let go when nobody has used it for a
//! while. Nothing is told to anybody before the journal says that it is durable.
//!
//! Locks, in the order in which they may be held together: the loaded mailboxes, a mailbox, the idle
//! ones, the directory, then those of the journal or of the routing table, then a client's lane.

mod admin;
mod answers;
mod backlog;
mod directory;
mod follow;
mod hand_out;
mod idle;
mod load;
mod mailbox;
mod raw;
mod reads;
mod restore;
mod settle;
mod shelf;
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

use crate::conversations::{Rooms, state_of};
use crate::webhooks::Touched;

pub use admin::{AdminError, MailboxView, MessageView, Part, Stored, StreamView};
pub(crate) use answers::{Answer, Answers, Waiting};
use backlog::Backlogs;
pub use backlog::{Backlog, MailboxBacklog};
pub use directory::{DIRECTORY, NamedStream};
use directory::{Directory, Entry};
pub(crate) use directory::{Kind, Location};
pub(crate) use follow::{Follower, Followers, Look};
pub(crate) use hand_out::Outcome;
use idle::Idle;
pub(crate) use mailbox::Slot;
pub use raw::Range;
pub(crate) use raw::{Refusal, check_stream_name};
pub(crate) use reads::{Reads, UNREAD_SIZE_MAX};
pub(crate) use restore::Reach;
pub use streams::StreamRetention;
pub use write::Key;

/// What mailboxes hold, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Unacknowledged messages of one mailbox.
    pub messages_max: usize,
    /// Their bytes.
    pub size_max: u64,
    /// How long a message waits at most.
    pub ttl: Duration,
    /// How long a subscriber may take to acknowledge one.
    pub ack_timeout: Duration,
    /// Messages of one mailbox that are handed out at the same time.
    pub in_flight_max: usize,
    /// Deliveries after which a message that nobody acknowledged is a dead letter; 0 for as many as
    /// it takes.
    pub deliveries_max: u32,
    /// Mailboxes, streams and conversations of one namespace; and partitions of all topics, those of
    /// deleted topics included.
    pub names_per_namespace_max: usize,
    /// Of conversations.
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

/// Why what is kept cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be read.
    #[error("the directory of streams cannot be read: {0}")]
    Read(#[from] ReadError),
    /// It was read, and makes no sense.
    #[error("the directory of streams: {0}")]
    Malformed(#[from] Malformed),
}

/// See the module's documentation.
pub(crate) struct Store {
    pub(crate) journal: Arc<Journal>,
    options: Options,
    directory: RwLock<Directory>,
    /// Streams whose entry in the directory may not be durable yet.
    creating: Mutex<BTreeMap<StreamId, Ticket>>,
    creating_count: AtomicUsize,
    /// By name; ordered, so that they are looked after in the same order in every run.
    loaded: Mutex<BTreeMap<Arc<str>, Arc<Slot>>>,
    idle: Mutex<Idle>,
    backlogs: Backlogs,
    /// New names refused because their namespace has too many.
    pub(crate) names_refused: AtomicU64,
    /// Conversations.
    pub(crate) rooms: Rooms,
    /// Those of them that an agent may have to be called for.
    pub(crate) touched: Touched,
}

/// Bytes that are read of the directory at a time.
const CHUNK: ReadLimit = ReadLimit {
    records: 10_000,
    bytes: 1 << 20,
};

/// What [`Store::each_record`] reads at a time.
const EACH: ReadLimit = ReadLimit {
    records: 1_024,
    bytes: 1 << 20,
};

impl Store {
    /// Reads the directory.
    pub(crate) fn open(journal: Arc<Journal>, options: Options) -> Result<Self, StoreError> {
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
            rooms: Rooms::new(
                options.conversations.fitting(&journal),
                journal.shard_count(),
            ),
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

    /// The stream of that name, made if there is none.
    pub(crate) fn find_or_create(
        &self,
        kind: Kind,
        name: &str,
        now_ms: u64,
    ) -> Result<Location, AppendError> {
        self.find_or_create_in(kind, name, self.shard_of(name), now_ms)
    }

    /// The shard of what is made under that name, unless it belongs to another's.
    pub(crate) fn shard_of(&self, name: &str) -> ShardId {
        directory::shard_of(name, self.journal.shard_count())
    }

    /// Whether a namespace may have another name, unless the name is there already.
    pub(crate) fn check_names(&self, kind: Kind, name: &str) -> Result<(), (ErrorCode, String)> {
        let limit = self.options.names_per_namespace_max;
        let directory = self.directory.read();
        if directory.find(kind, name).is_some() || directory.names_beside(name) < limit {
            return Ok(());
        }
        self.names_refused.fetch_add(1, Ordering::Relaxed);
        let namespace = directory::namespace_of(name);
        let message = format!(
            "namespace `{namespace}` has too many names (limit {limit}, `namespace.names_max`)"
        );
        Err((ErrorCode::Denied, message))
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
            // A crash may have kept the records of a stream whose entry it took: they were never
            // acknowledged, and their stream's number is not used again.
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

    /// What must be durable before the stream may be spoken of, if that is not so yet.
    pub(crate) fn creation(&self, stream: StreamId) -> Option<Ticket> {
        if self.creating_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut creating = self.creating.lock();
        // Entries of the directory become durable in the order of their streams.
        while let Some(oldest) = creating.first_entry()
            && self.journal.status(*oldest.get()) == Status::Durable
        {
            oldest.remove();
        }
        self.creating_count.store(creating.len(), Ordering::Release);
        creating.get(&stream).copied()
    }

    /// Takes every durable record of a stream that is kept, oldest first. What is trimmed meanwhile is
    /// passed over: whoever trims has written what stands for it behind it.
    pub(crate) fn each_record<E: From<ReadError>>(
        &self,
        location: Location,
        take: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_record_within(Reach::Disk, location, take)
            .map(drop)
    }

    /// The same as far as it is within reach; `None` if not all of it is.
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

    /// Every stream of a kind.
    pub(crate) fn all(&self, kind: Kind) -> Vec<(String, Location)> {
        let directory = self.directory.read();
        let all = directory.iter(kind);
        all.map(|(name, at)| (name.to_owned(), at)).collect()
    }

    /// Streams that have a name.
    pub(crate) fn stream_count(&self) -> usize {
        self.directory.read().len()
    }

    /// Mailboxes that are loaded.
    fn loaded_count(&self) -> usize {
        self.loaded.lock().len()
    }
}

/// Why something was not appended, as whoever asked is told.
pub(crate) fn refusal(journal: &Journal, error: AppendError) -> (ErrorCode, String) {
    match error {
        AppendError::TooLarge { .. } => (ErrorCode::TooLarge, error.to_string()),
        AppendError::Conflict { .. } => (ErrorCode::Conflict, error.to_string()),
        AppendError::Full | AppendError::DiskFull => (ErrorCode::Unavailable, error.to_string()),
        AppendError::Failed => {
            let message = match journal.health() {
                journal::Health::Failed { reason } => format!("{error}: {reason}"),
                _ => error.to_string(),
            };
            (ErrorCode::Unavailable, message)
        }
    }
}

/// What is told when the journal has failed with something under way.
pub(crate) const UNCONFIRMED: &str = "the journal has failed: whether this is on disk will be known when the \
                           node is started again";

fn unreadable(error: &ReadError) -> (ErrorCode, String) {
    (ErrorCode::Internal, error.to_string())
}

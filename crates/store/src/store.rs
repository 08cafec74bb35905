//! [`Store`]: finds, creates and reads the journal's streams by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;

use journal::{
    AppendError, Follow, Following, Health, Journal, Read, ReadError, ReadLimit, Record, ShardId,
    Status, StreamId, Ticket,
};
use parking_lot::{Mutex, RwLock};

use crate::directory::{self, DIRECTORY, Directory, Entry, Kind, Location};
use crate::error::{FollowError, OpenError, StorageError};
use crate::reach::Reach;

/// The journal's streams by name.
pub struct Store {
    /// The journal.
    pub journal: Arc<Journal>,
    /// Maximum number of mailboxes, streams and conversations per namespace.
    names_per_namespace_max: usize,
    directory: RwLock<Directory>,
    /// Streams whose directory entry may not be durable yet.
    creating: Mutex<BTreeMap<StreamId, Ticket>>,
    creating_count: AtomicUsize,
    /// Number of new names refused because their namespace has too many.
    names_refused: AtomicU64,
}

/// A stream with this bit belongs to the stream with the same number without it, and is created
/// and erased with it.
const COMPANION_BIT: u64 = 1 << 63;

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
    /// Reads the directory of a journal. `names_per_namespace_max` limits the mailboxes, streams
    /// and conversations of a namespace, and the partitions of all topics, those of deleted topics
    /// included.
    pub fn open(journal: Arc<Journal>, names_per_namespace_max: usize) -> Result<Self, OpenError> {
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
            journal,
            names_per_namespace_max,
            directory: RwLock::new(directory),
            creating: Mutex::default(),
            creating_count: AtomicUsize::new(0),
            names_refused: AtomicU64::new(0),
        })
    }

    /// Returns the stream with that kind and name.
    pub fn find(&self, kind: Kind, name: &str) -> Option<Location> {
        self.directory.read().find(kind, name)
    }

    /// Returns the stream with that name, creating it if necessary.
    pub fn find_or_create(
        &self,
        kind: Kind,
        name: &str,
        now_ms: u64,
    ) -> Result<Location, AppendError> {
        self.find_or_create_in(kind, name, self.shard_of(name), now_ms)
    }

    /// Returns the shard in which a new name is created, unless another shard is requested.
    pub fn shard_of(&self, name: &str) -> ShardId {
        directory::shard_of(name, self.journal.shard_count())
    }

    /// Checks whether the namespace of a name may have another name. Existing names pass.
    pub fn check_names(&self, kind: Kind, name: &str) -> Result<(), StorageError> {
        let limit = self.names_per_namespace_max;
        let directory = self.directory.read();
        if directory.find(kind, name).is_some() || directory.namespace_name_count(name) < limit {
            return Ok(());
        }
        self.names_refused.fetch_add(1, Ordering::Relaxed);
        let namespace = directory::namespace_of(name).to_owned();
        Err(StorageError::Names { namespace, limit })
    }

    /// Checks whether topics may have had `count` partitions since the journal was created, those of
    /// deleted topics included. Returns the limit if they may not.
    pub fn check_partitions(&self, count: usize) -> Result<(), usize> {
        let limit = self.names_per_namespace_max;
        if count <= limit {
            return Ok(());
        }
        self.names_refused.fetch_add(1, Ordering::Relaxed);
        Err(limit)
    }

    /// Returns the stream with that name, creating it in that shard if necessary.
    pub fn find_or_create_in(
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
        [stream, Self::companion(stream)].into_iter().any(|stream| {
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
    pub fn creation(&self, stream: StreamId) -> Option<Ticket> {
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
    pub fn each_record<E: From<ReadError>>(
        &self,
        location: Location,
        take: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_record_within(Reach::Disk, location, take)
            .map(drop)
    }

    /// Like [`Store::each_record`], as far as records are within reach; returns `None` if not all
    /// are.
    pub fn each_record_within<E: From<ReadError>>(
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
    pub fn all(&self, kind: Kind) -> Vec<(String, Location)> {
        let directory = self.directory.read();
        let all = directory.iter(kind);
        all.map(|(name, at)| (name.to_owned(), at)).collect()
    }

    /// Returns the number of named streams.
    pub fn stream_count(&self) -> usize {
        self.directory.read().len()
    }

    /// Returns the kind, the name and the location of a stream.
    pub fn named(&self, stream: StreamId) -> Option<(Kind, String, Location)> {
        self.directory.read().named(stream)
    }

    /// Returns the names of streams of a kind with that prefix after the name `after`, in order.
    pub fn names(&self, kind: Kind, prefix: &str, after: &str, limit: usize) -> Vec<String> {
        self.directory.read().list(kind, prefix, after, limit)
    }

    /// Returns the second stream that belongs to a named stream.
    #[inline]
    pub fn companion(stream: StreamId) -> StreamId {
        StreamId(stream.0 | COMPANION_BIT)
    }

    /// Returns the number of new names refused because their namespace has too many.
    pub fn names_refused(&self) -> u64 {
        self.names_refused.load(Ordering::Relaxed)
    }

    /// Returns the error of a failed append.
    pub fn append_error(&self, error: AppendError) -> StorageError {
        StorageError::of_append(&self.journal, error)
    }

    /// Reads a stream; `None` if the records are not within reach.
    pub fn read_within(
        &self,
        reach: Reach,
        location: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read>, ReadError> {
        reach.read(&self.journal, location, from, limit)
    }

    /// Registers the waker for a durable record at or after `from`; `None` if there is one already.
    pub fn follow(
        &self,
        Location { shard, stream }: Location,
        from: u64,
        waker: &Waker,
    ) -> Result<Option<Following>, FollowError> {
        if let Health::Failed { reason } = self.journal.health() {
            return Err(FollowError::Failed { reason });
        }
        match self.journal.follow(shard, stream, from, waker) {
            Follow::Waiting(following) => Ok(Some(following)),
            Follow::Ready => Ok(None),
            Follow::Refused => Err(FollowError::TooMany),
        }
    }

    /// Registers the waker for the creation of another stream after the first `count`; `None` if it
    /// exists already.
    pub fn follow_names(
        &self,
        count: u64,
        waker: &Waker,
    ) -> Result<Option<Following>, FollowError> {
        let (shard, stream) = DIRECTORY;
        self.follow(Location { shard, stream }, count, waker)
    }

    /// Ends the registration of a waker, if it has not ended by itself.
    pub fn unfollow(&self, following: &Following) {
        self.journal.unfollow(following);
    }
}

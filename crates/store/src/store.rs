//! [`Store`]: finds, creates and reads the journal's streams by name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use journal::{
    AppendError, Follow, Following, Guard, Health, Journal, Reach, Read, ReadError, ReadLimit,
    Record, ShardId, StreamId,
};
use parking_lot::RwLock;
use platform::Durable;

use crate::directory::entry::Entry;
use crate::directory::table::Directory;
use crate::directory::{self, DIRECTORY, Kind, Location, load, upgrade};
use crate::error::{FollowError, OpenError, StorageError};

/// The journal's streams by name.
///
/// The lock of the directory is taken with the lock of a shard held, never the other way round.
pub struct Store {
    /// The journal.
    pub journal: Arc<Journal>,
    /// Maximum number of mailboxes, streams and conversations per namespace.
    names_per_namespace_max: usize,
    pub(crate) directory: RwLock<Directory>,
    /// Number of new names refused because their namespace has too many.
    names_refused: AtomicU64,
    /// Number of records of format 1 that this start carried over.
    upgraded: Option<u64>,
}

/// Returns the number to which a stream belongs.
pub(crate) fn number_of(stream: StreamId) -> StreamId {
    StreamId(stream.0 & !BELONGING_BITS)
}

/// The size of an append: of payloads, without the headers of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendSize {
    /// Bytes of the payloads.
    pub bytes: usize,
    /// Number of records.
    pub count: usize,
}

/// A stream with this bit belongs to the stream with the same number without it, and is created
/// and erased with it.
const COMPANION_BIT: u64 = 1 << 63;

/// The highest bits of the id of a stream that belongs to the stream with the same number without
/// them.
const BELONGING_BITS: u64 = 7 << 61;

/// Size of one read by [`Store::each_record`].
const EACH: ReadLimit = ReadLimit {
    records: 1_024,
    bytes: 1 << 20,
};

impl Store {
    /// Creates a store of a node that leads all shards of its journal: carries over a directory of
    /// format 1, and reads the names. `names_per_namespace_max` limits the mailboxes, streams and
    /// conversations of a namespace, and the partitions of all topics, those of deleted topics
    /// included. Blocks until the upgrade is on disk.
    pub fn open(
        journal: Arc<Journal>,
        names_per_namespace_max: usize,
        now_ms: u64,
    ) -> Result<Self, OpenError> {
        let upgraded = upgrade::upgrade(&journal, now_ms, &|ticket| {
            Durable::new(&journal, [None, Some(ticket)]).wait()
        })?;
        let store = Self {
            upgraded,
            ..Self::new(journal, names_per_namespace_max)
        };
        load::shards(&store.journal).try_for_each(|shard| store.begin_reign(shard))?;
        Ok(store)
    }

    /// Creates a store that knows no names yet: see [`Store::begin_reign`].
    pub fn new(journal: Arc<Journal>, names_per_namespace_max: usize) -> Self {
        Self {
            directory: RwLock::new(Directory::new(journal.shard_count())),
            journal,
            names_per_namespace_max,
            names_refused: AtomicU64::new(0),
            upgraded: None,
        }
    }

    /// Reads the names of a shard, which must be in format 2. Call it when a reign over the shard
    /// begins, after all entries of earlier reigns are committed and before any stream is created:
    /// an earlier reign may have created streams whose entries were cut. Writes nothing.
    pub fn begin_reign(&self, shard: ShardId) -> Result<(), OpenError> {
        let entries = load::load(&self.journal, shard)?;
        self.directory.write().replace(shard, entries);
        Ok(())
    }

    /// Returns the number of records of the directory of format 1 that this start carried over;
    /// `None` if the directory had the current format.
    pub fn upgraded(&self) -> Option<u64> {
        self.upgraded
    }

    /// Returns the stream with that kind and name.
    pub fn find(&self, kind: Kind, name: &str) -> Option<Location> {
        self.directory.read().find(kind, name)
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

    /// Returns the stream with that name, creating it in that shard if necessary. The next append
    /// to the stream is durable after its creation.
    pub fn find_or_create_in(
        &self,
        kind: Kind,
        name: &str,
        shard: ShardId,
        now_ms: u64,
    ) -> Result<Location, AppendError> {
        match self.find(kind, name) {
            Some(found) => Ok(found),
            None => self.find_or_create(&mut self.journal.lock(shard, now_ms), kind, name),
        }
    }

    /// Locks a shard for an append of `size`, and returns the streams with these names, creating
    /// them if necessary. Their entries and the append become durable together, unless they are
    /// larger than a block; then the entries precede the append.
    ///
    /// The shard must be that of the names. Does not reserve room if all streams exist.
    pub fn lock_or_create<'g, const N: usize>(
        &self,
        shard: ShardId,
        names: [(Kind, &str); N],
        size: AppendSize,
        lock: impl Fn(ShardId) -> Guard<'g>,
    ) -> Result<(Guard<'g>, [Location; N]), AppendError> {
        let mut guard = lock(shard);
        let mut all = size;
        for (_, name) in names
            .iter()
            .filter(|(kind, name)| self.find(*kind, name).is_none())
        {
            all.bytes += Entry::size(name);
            all.count += 1;
        }
        let is_new = all.count > size.count;
        let reserved = match is_new {
            true => guard.reserve(all.bytes, all.count),
            false => Ok(()),
        };
        let is_split = matches!(reserved, Err(AppendError::TooLarge { .. }));
        if !is_split {
            reserved?;
        }
        let stream = DIRECTORY;
        let mut locations = [Location { shard, stream }; N];
        for (location, (kind, name)) in locations.iter_mut().zip(names) {
            *location = self.find_or_create(&mut guard, kind, name)?;
        }
        if is_split {
            drop(guard);
            guard = lock(shard);
        }
        Ok((guard, locations))
    }

    /// Returns the stream with that name, creating it under the guard of its shard if necessary.
    fn find_or_create(
        &self,
        guard: &mut Guard<'_>,
        kind: Kind,
        name: &str,
    ) -> Result<Location, AppendError> {
        // Streams of a shard are created under its guard only, so no other thread creates this one.
        if let Some(found) = self.find(kind, name) {
            debug_assert_eq!(found.shard, guard.shard(), "a name has one shard");
            return Ok(found);
        }
        let shard = guard.shard();
        let mut directory = self.directory.write();
        loop {
            let number = directory.next_number(shard);
            // Records of a stream whose entry was lost, with accepted loss.
            let is_taken = [number, Self::companion(number)]
                .into_iter()
                .any(|stream| guard.next(stream) > 0);
            let entry = Entry {
                kind: if is_taken { Kind::Void } else { kind },
                number,
                name: if is_taken { "" } else { name },
            };
            assert!(directory.fits(shard, entry), "2^32 stream numbers are used");
            let expected = Some(directory.end(shard));
            guard.append(DIRECTORY, expected, entry.tag(), &entry.encode())?;
            directory.push(shard, entry);
            if !is_taken {
                let stream = number;
                return Ok(Location { shard, stream });
            }
        }
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

    /// Returns one more than the highest number of any stream. A stream that is created later may
    /// have a lower number, in another shard.
    pub fn numbers_end(&self) -> u64 {
        self.directory.read().number_max() + 1
    }

    /// Returns the kind, the name and the location of a stream.
    pub fn named(&self, stream: StreamId) -> Option<(Kind, String, Location)> {
        self.directory.read().named(stream)
    }

    /// Returns the time at which a stream was created, in milliseconds since 1970-01-01 UTC; `None`
    /// if its directory entry is not durable or was lost. May wait for the disk.
    pub fn created_ms(&self, at: Location) -> Result<Option<u64>, ReadError> {
        let Some(offset) = self.directory.read().entry_offset(at) else {
            return Ok(None);
        };
        let limit = ReadLimit {
            records: 1,
            bytes: 0,
        };
        let read = self.journal.read(at.shard, DIRECTORY, offset, limit)?;
        let entry = read.records.first().filter(|it| it.offset == offset);
        Ok(entry.map(|it| it.time_ms))
    }

    /// Returns whether the stream was created in format 1 of the directory.
    pub fn is_carried_over(&self, stream: StreamId) -> bool {
        self.directory.read().is_carried_over(stream)
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
        let Location { shard, stream } = location;
        self.journal.read_within(reach, shard, stream, from, limit)
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

    /// Ends the registration of a waker, if it has not ended by itself.
    pub fn unfollow(&self, following: &Following) {
        self.journal.unfollow(following);
    }
}

#[cfg(test)]
mod tests;

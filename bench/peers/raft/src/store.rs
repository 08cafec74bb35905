//! The log of a group: entries in memory for readers, and in the node's file for safety.
//!
//! All groups of a node share one file, one thread that syncs it, and each of its syncs. Votes are
//! records of the same file, so votes and entries are written in the order in which openraft
//! asks for them. `append` returns when the entries can be read; the thread calls openraft back
//! when they are synced. Nothing reads the file.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::mem;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use contract::{Counts, ZeroedFile};
use openraft::entry::EntryPayload;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use openraft::{OptionalSend, RaftTypeConfig};

use crate::group::Group;
use crate::types::{Entry, LogId, Types, Vote};
use crate::wire;

/// Bytes of blocks that a group keeps in memory though no reader needs them. Small, so that memory
/// is used again: with 64 MiB the kernel's clearing of fresh pages was 40 % of all processor time.
const KEPT_SIZE_MAX: usize = 4 << 20;
/// Bytes of blocks from which on entries go though a follower needs them, which ends the floor.
const NEEDED_SIZE_MAX: usize = 512 << 20;
/// Bytes before an entry in the file. A copy is many times slower on some processors when its ends
/// are less than 32 bytes apart, modulo a page; a header of about that size would do just that to
/// every block, since the buffers that are copied begin at pages.
const PADDING_SIZE: usize = 256;
/// Bytes of blocks from which on a read for replication ends.
const READ_SIZE_MAX: usize = 2 << 20;

/// The file of a node, with the thread that writes and syncs it.
#[derive(Clone, Default)]
pub(crate) struct LogFile(Arc<Shared>);

#[derive(Default)]
struct Shared {
    batch: Mutex<Batch>,
    filled: Condvar,
}

/// Records that will share a sync, and the callbacks for when it is done.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    callbacks: Vec<(u8, IOFlushed<Types>)>,
}

impl Batch {
    /// Adds a callback of a group. Of several for appended entries only the last one is called:
    /// it says that everything before it is synced too, and openraft's task that forwards them
    /// sleeps for a millisecond of tokio's timer when two follow each other within a microsecond.
    fn add(&mut self, group: u8, callback: IOFlushed<Types>) {
        let is_append = |callback: &IOFlushed<Types>| matches!(callback, IOFlushed::Notify(_));
        let earlier = self
            .callbacks
            .iter_mut()
            .find(|(other, earlier)| *other == group && is_append(earlier));
        match earlier {
            Some((_, earlier)) if is_append(&callback) => *earlier = callback,
            _ => self.callbacks.push((group, callback)),
        }
    }
}

impl LogFile {
    /// Starts the thread.
    pub(crate) fn start(mut file: ZeroedFile, counts: Counts) -> LogFile {
        let log = LogFile::default();
        let shared = log.0.clone();
        thread::spawn(move || {
            let mut batch = Batch::default();
            loop {
                shared.take(&mut batch);
                match file.append(&batch.bytes) {
                    Ok(took_ns) => counts.record(took_ns, batch.bytes.len()),
                    Err(error) => file.fail(&error),
                }
                batch.bytes.clear();
                for (_, callback) in batch.callbacks.drain(..) {
                    callback.io_completed(Ok(()));
                }
            }
        });
        log
    }

    /// Queues records of a group, which `write` appends, for the next sync.
    fn queue(&self, group: u8, callback: IOFlushed<Types>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut batch = self.0.lock();
        let was_empty = batch.callbacks.is_empty();
        write(&mut batch.bytes);
        batch.add(group, callback);
        drop(batch);
        if was_empty {
            self.0.filled.notify_one();
        }
    }
}

impl Shared {
    /// Takes all records into `batch`, which is empty; waits while there are none.
    fn take(&self, batch: &mut Batch) {
        let mut queued = self.lock();
        while queued.callbacks.is_empty() {
            queued = self
                .filled
                .wait(queued)
                .unwrap_or_else(PoisonError::into_inner);
        }
        mem::swap(&mut *queued, batch);
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entries of a group that are in memory.
#[derive(Default)]
struct Log {
    entries: VecDeque<Entry>,
    /// The index of the first of them.
    start: u64,
    size: usize,
    vote: Option<Vote>,
}

impl Log {
    fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// Adds an entry, and drops those at the start that no reader needs. `needed` is the index of
    /// the first entry that one does.
    fn push(&mut self, entry: Entry, needed: u64) {
        self.size += size_of_entry(&entry);
        self.entries.push_back(entry);
        while self.size > KEPT_SIZE_MAX
            && (self.start < needed || self.size > NEEDED_SIZE_MAX)
            && self.entries.len() > 1
            && let Some(entry) = self.entries.pop_front()
        {
            self.size -= size_of_entry(&entry);
            self.start += 1;
        }
    }

    /// The entries from `start` to `end`, which is exclusive, but no more than `size_max` bytes
    /// and one entry.
    fn read(&self, start: u64, end: u64, size_max: usize) -> io::Result<Vec<Entry>> {
        if start < self.start && start < end {
            let message = format!("entry {start} is no longer in memory ({})", self.start);
            return Err(io::Error::other(message));
        }
        let mut entries = Vec::new();
        let mut size = 0;
        for index in start..end.min(self.end()) {
            let entry = &self.entries[(index - self.start) as usize];
            size += size_of_entry(entry);
            if size > size_max && !entries.is_empty() {
                break;
            }
            entries.push(entry.clone());
        }
        Ok(entries)
    }
}

fn size_of_entry(entry: &Entry) -> usize {
    match &entry.payload {
        EntryPayload::Normal(block) => 32 + block.body.len(),
        _ => 32,
    }
}

/// The log of one group, as openraft writes it.
pub(crate) struct Store {
    reader: Reader,
    file: LogFile,
    group: Arc<Group>,
}

/// The log of one group, as openraft reads it.
#[derive(Clone, Default)]
pub(crate) struct Reader(Arc<Mutex<Log>>);

impl Store {
    /// An empty log.
    pub(crate) fn new(file: LogFile, group: Arc<Group>) -> Store {
        Store {
            reader: Reader::default(),
            file,
            group,
        }
    }
}

impl Reader {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RaftLogReader<Types> for Reader {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        self.lock().read(start, end, usize::MAX)
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, io::Error> {
        self.lock().read(start, end, READ_SIZE_MAX)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.lock().vote)
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Reader;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let log = self.reader.lock();
        Ok(LogState {
            last_purged_log_id: None,
            last_log_id: log.entries.back().map(|entry| entry.log_id),
        })
    }

    async fn get_log_reader(&mut self) -> Reader {
        self.reader.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let (sender, receiver) = Types::oneshot();
        self.file
            .queue(self.group.number, IOFlushed::signal(sender), |out| {
                out.extend_from_slice(&[b'v', self.group.number]);
                wire::put_vote(out, vote);
            });
        let synced: Result<Result<(), io::Error>, _> = receiver.await;
        synced.map_err(|_| io::Error::other("the log's thread has ended"))??;
        self.reader.lock().vote = Some(*vote);
        Ok(())
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = <Types as RaftTypeConfig>::Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let needed = self.group.needed();
        let mut log = self.reader.lock();
        let mut hole = None;
        self.file.queue(self.group.number, callback, |out| {
            for entry in entries {
                if entry.log_id.index != log.end() {
                    hole = Some((entry.log_id.index, log.end()));
                    return;
                }
                out.extend_from_slice(&[b'e', self.group.number]);
                out.extend_from_slice(&[0; PADDING_SIZE]);
                wire::put_entry(out, &entry);
                if let EntryPayload::Normal(block) = &entry.payload {
                    self.group.set_taken(block.number);
                }
                log.push(entry, needed);
            }
        });
        match hole {
            None => Ok(()),
            Some((index, end)) => Err(io::Error::other(format!(
                "entry {index} after {end} entries"
            ))),
        }
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let mut log = self.reader.lock();
        let end = last.map_or(0, |last| last.index + 1).max(log.start);
        while log.end() > end
            && let Some(entry) = log.entries.pop_back()
        {
            log.size -= size_of_entry(&entry);
        }
        self.file
            .queue(self.group.number, IOFlushed::noop(), |out| {
                out.extend_from_slice(&[b't', self.group.number]);
                out.extend_from_slice(&end.to_le_bytes());
            });
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        let message = format!("purge up to {upto}: nothing here makes snapshots");
        Err(io::Error::other(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Block, log_id};

    fn entry(index: u64, size: usize) -> Entry {
        let body = vec![index as u8; size].into();
        Entry {
            log_id: log_id(1, index),
            payload: EntryPayload::Normal(Block {
                number: index,
                body,
            }),
        }
    }

    #[test]
    fn a_read_ends_at_its_size_but_has_one_entry() {
        let mut log = Log::default();
        (0..10).for_each(|index| log.push(entry(index, 68), 0));
        let indexes = |start, end, size| -> Vec<u64> {
            let entries = log.read(start, end, size).unwrap();
            entries.iter().map(|entry| entry.log_id.index).collect()
        };
        assert_eq!(indexes(2, 5, usize::MAX), [2, 3, 4]);
        assert_eq!(indexes(2, 9, 250), [2, 3]);
        assert_eq!(indexes(8, 20, 1), [8]);
        assert_eq!(indexes(10, 20, 1000), [] as [u64; 0]);
    }

    #[test]
    fn what_is_no_longer_in_memory_is_an_error() {
        let mut log = Log::default();
        (0..5).for_each(|index| log.push(entry(index, KEPT_SIZE_MAX / 3), 2));
        assert_eq!((log.start, log.end()), (2, 5));
        log.push(entry(5, 0), 9);
        log.entries.truncate(2);
        assert_eq!((log.start, log.end()), (3, 5));
        assert!(log.read(2, 5, usize::MAX).is_err());
        assert_eq!(log.read(3, 5, usize::MAX).unwrap().len(), 2);
    }
}

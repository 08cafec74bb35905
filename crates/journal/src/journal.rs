//! The handle: what everybody else calls.

use std::sync::Arc;
use std::task::Waker;

use crate::durable::{Status, Ticket};
use crate::extent::ExtentError;
use crate::follow::{Follow, Following};
use crate::guard::Guard;
use crate::health::{Health, HealthChanges};
use crate::read::{self, Read, ReadError, ReadLimit};
use crate::round::Round;
use crate::segment::ShardEnd;
use crate::shard::Shard;
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::threads::Threads;
use crate::{Commit, Index, Position, ShardId, StreamId};

/// What a block may hold beside its largest record: its header, and a few small records.
const BESIDE: usize = 1024;

/// An open journal. See the crate's documentation.
#[derive(Debug)]
pub struct Journal {
    shared: Arc<Shared>,
    /// Ended with the journal; a simulation has none.
    _threads: Option<Threads>,
}

/// How a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// The first offset there is.
    pub start: u64,
    /// The next record's offset, whether the one before is durable or not.
    pub next: u64,
    /// Where the stream ends for readers.
    pub next_durable: u64,
}

/// What has been written since the journal was opened, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Syncs of the line.
    pub syncs: u64,
    /// Blocks, those that carry only a hint included.
    pub blocks: u64,
    /// Records.
    pub records: u64,
    /// Bytes of blocks.
    pub bytes: u64,
    /// Bytes that wait for the disk.
    pub queued_bytes: u64,
    /// Segments that are not filed, the active one included.
    pub segments: usize,
}

/// A shard's tail that cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// A block that would be void is committed.
    #[error("block {} is committed", committed.0)]
    Committed {
        /// The last one that is.
        committed: Index,
    },
    /// A block of the shard waits for the disk; its ticket ends first.
    #[error("a block of the shard waits for the disk")]
    Pending,
    /// The journal has failed.
    #[error("the journal has failed")]
    Failed,
}

impl Journal {
    pub(crate) fn new(shared: Arc<Shared>, threads: Option<Threads>) -> Journal {
        Journal {
            shared,
            _threads: threads,
        }
    }

    /// How many shards there are. A shard that does not exist must not be named.
    pub fn shard_count(&self) -> u16 {
        self.shared.shards.len() as u16
    }

    /// Bytes of a record at most, with room for others beside it in its block.
    pub fn record_size_max(&self) -> usize {
        let limits = &self.shared.limits;
        limits.record.min(limits.block - BESIDE)
    }

    /// Names the journal; the same for its whole life.
    pub fn id(&self) -> u64 {
        self.shared.journal_id
    }

    /// Which life of the journal this is. It rises with every start that follows one in which anything
    /// became durable, and is known to be durable itself: the sequence of the first segment that this
    /// start began, from 1.
    pub fn life(&self) -> u64 {
        self.shared.segments.lock().first_own
    }

    /// Locks a shard to decide and append. `now_ms` is milliseconds since 1970.
    pub fn lock(&self, shard: ShardId, now_ms: u64) -> Guard<'_> {
        Guard::new(&self.shared, self.shared.shard(shard), now_ms)
    }

    /// Begins a round of appends that one sync is to serve.
    pub fn round(&self) -> Round {
        Round::new(self.shared.clone())
    }

    /// What is known of a ticket's block now.
    pub fn status(&self, ticket: Ticket) -> Status {
        self.shard(ticket.shard).publication.status(ticket.index)
    }

    /// Wakes `waker` once when the ticket's block is no longer pending; if it is not now, says so
    /// and keeps nothing. One waker per connection will do: for its last ticket.
    pub fn notify(&self, ticket: Ticket, waker: &Waker) -> Status {
        let publication = &self.shard(ticket.shard).publication;
        publication.notify(ticket.index, waker)
    }

    /// Sleeps until the ticket's block is no longer pending.
    pub fn wait(&self, ticket: Ticket) -> Status {
        self.shard(ticket.shard).publication.wait(ticket.index)
    }

    /// Reads a stream's records from an offset on, as far as they are durable (committed). A
    /// stream that is not there is empty.
    pub fn read(
        &self,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Read, ReadError> {
        read::read(&self.shared, self.shard(shard), stream, from, limit)
    }

    /// The same without any access to the disk, from what is in memory; `None` if that is not
    /// enough.
    pub fn read_in_memory(
        &self,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read>, ReadError> {
        read::read_in_memory(self.shard(shard), stream, from, limit)
    }

    /// Wakes `waker` once when the stream has something durable at `from` or behind, or starts
    /// behind it.
    pub fn follow(&self, shard: ShardId, stream: StreamId, from: u64, waker: &Waker) -> Follow {
        let of = self.shard(shard);
        of.followers.add(shard, stream, waker, || {
            let state = self.stream(shard, stream);
            self.shared.health.is_failed()
                || state.is_some_and(|state| state.next_durable > from || state.start > from)
        })
    }

    /// Ends what [`Journal::follow`] began, if it has not ended by itself.
    pub fn unfollow(&self, following: &Following) {
        self.shard(following.shard).followers.remove(following);
    }

    /// How a stream stands; `None` if nothing was ever appended to it.
    pub fn stream(&self, shard: ShardId, stream: StreamId) -> Option<StreamState> {
        let state = self.shard(shard).state.lock();
        let entry = state.streams.get(&stream)?;
        Some(StreamState {
            start: entry.start,
            next: entry.next,
            next_durable: entry.next_at(state.committed()),
        })
    }

    /// Up to `limit` streams of a shard, ascending, behind `after`.
    pub fn streams(
        &self,
        shard: ShardId,
        after: Option<StreamId>,
        limit: usize,
    ) -> Vec<(StreamId, StreamState)> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.shard(shard).state.lock();
        let committed = state.committed();
        let entries = state.streams.range((from, Bound::Unbounded)).take(limit);
        let states = entries.map(|(stream, entry)| {
            let state = StreamState {
                start: entry.start,
                next: entry.next,
                next_durable: entry.next_at(committed),
            };
            (*stream, state)
        });
        states.collect()
    }

    /// Bytes of a stream's payloads from its start on. Those that are filed are looked up on
    /// disk.
    pub fn bytes(&self, shard: ShardId, stream: StreamId) -> Result<u64, ExtentError> {
        let state = self.shard(shard).state.lock();
        let Some(entry) = state.streams.get(&stream) else {
            return Ok(0);
        };
        let start = entry.start;
        let unfiled = entry
            .runs()
            .filter(|run| state.tail.placed(run.index).is_some());
        let in_line = unfiled.map(|run| u64::from(run.bytes)).sum::<u64>();
        let extents = state.extents.clone();
        drop(state);
        Ok(extents.bytes(shard, stream, start)? + in_line)
    }

    /// Where to trim a stream so that it keeps about `bytes_max` of its bytes: at most a record
    /// less, at most a block's records more. Only what is durable is trimmed.
    pub fn offset_for_bytes(
        &self,
        shard: ShardId,
        stream: StreamId,
        bytes_max: u64,
    ) -> Result<u64, ExtentError> {
        let state = self.shard(shard).state.lock();
        let Some(entry) = state.streams.get(&stream) else {
            return Ok(0);
        };
        let mut kept = 0;
        for run in entry.runs().rev() {
            if state.tail.placed(run.index).is_none() {
                break;
            }
            kept += u64::from(run.bytes);
            if kept >= bytes_max {
                return Ok(run
                    .first
                    .max(entry.start)
                    .min(entry.next_at(state.committed())));
            }
        }
        let start = entry.start;
        let extents = state.extents.clone();
        drop(state);
        let offset = extents.offset_for_bytes(shard, stream, bytes_max - kept)?;
        Ok(offset.unwrap_or(start).max(start))
    }

    /// Where to trim a stream so that it keeps every record as young as `time_ms`, and not many
    /// older ones.
    pub fn offset_for_time(
        &self,
        shard: ShardId,
        stream: StreamId,
        time_ms: u64,
    ) -> Result<u64, ExtentError> {
        let state = self.shard(shard).state.lock();
        let Some(entry) = state.streams.get(&stream) else {
            return Ok(0);
        };
        let young = entry.runs().find(|run| {
            let placed = state.tail.placed(run.index);
            placed.is_some_and(|placed| placed.time_ms >= time_ms)
        });
        let next_durable = entry.next_at(state.committed());
        let in_line = young.map_or(next_durable, |run| run.first.min(next_durable));
        let start = entry.start;
        let extents = state.extents.clone();
        drop(state);
        let filed = extents.offset_for_time(shard, stream, start, time_ms)?;
        Ok(filed.unwrap_or(in_line).max(start))
    }

    /// Blocks from now on carry this Raft term.
    pub fn set_term(&self, shard: ShardId, term: u64) {
        self.shard(shard).state.lock().set_term(term);
    }

    /// A shard's last block, whether durable or not.
    pub fn shard_end(&self, shard: ShardId) -> ShardEnd {
        self.shard(shard).state.lock().end()
    }

    /// A shard's last block that is durable.
    pub fn durable(&self, shard: ShardId) -> Index {
        self.shard(shard).publication.durable()
    }

    /// Readers see blocks of the shard up to `index`, which are durable, from now on. Only if the
    /// options leave that to the caller.
    pub fn commit(&self, shard: ShardId, index: Index) {
        assert_eq!(self.shared.commit, Commit::ByCaller, "{COMMIT_BY_CALLER}");
        let of = self.shard(shard);
        let mut state = of.state.lock();
        let durable = state.tail.last();
        state.commit(index.min(durable), |trim| {
            self.shared.note_trim(shard, trim)
        });
        drop(state);
        of.followers.wake_all();
    }

    /// Makes a shard's blocks from `index` on void, and appends a block that says so: what a
    /// follower does whose tail is not its leader's.
    pub fn cut(&self, shard: ShardId, index: Index) -> Result<(), CutError> {
        if self.shared.health.is_failed() {
            return Err(CutError::Failed);
        }
        let of = self.shard(shard);
        let mut state = of.state.lock();
        if index <= state.committed() {
            let committed = state.committed();
            return Err(CutError::Committed { committed });
        }
        if state.end().index != state.tail.last() {
            return Err(CutError::Pending);
        }
        if index <= state.end().index {
            state.cut(index);
            of.publication.start_at(Index(index.0 - 1));
            drop(state);
            self.shared.doorbell.ring(shard);
        }
        Ok(())
    }

    /// Everything in the line before it is durable.
    pub fn durable_position(&self) -> Position {
        self.shared.segments.lock().durable
    }

    /// Whether appends are taken, and if not, why.
    pub fn health(&self) -> Health {
        self.shared.health.get()
    }

    /// How often each state of [`Journal::health`] was entered since the journal was opened.
    pub fn health_changes(&self) -> HealthChanges {
        self.shared.health.changes()
    }

    /// Whether appends wait because no segment is free. Normal for a moment under load; filing frees
    /// one.
    pub fn is_starved(&self) -> bool {
        self.shared.is_starved.load(Ordering::SeqCst)
    }

    /// Segments that are free for the line.
    pub fn spare_segments(&self) -> usize {
        self.shared.spares.ready()
    }

    /// What was written since the journal was opened, and what waits.
    pub fn stats(&self) -> Stats {
        let counters = &self.shared.counters;
        Stats {
            syncs: counters.syncs.load(Ordering::Relaxed),
            blocks: counters.blocks.load(Ordering::Relaxed),
            records: counters.records.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            queued_bytes: self.shared.queued_bytes.load(Ordering::Relaxed),
            segments: self.shared.segments.lock().open.len(),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn shard(&self, shard: ShardId) -> &Shard {
        self.shared.shard(shard)
    }
}

const COMMIT_BY_CALLER: &str = "what is committed is said by the disk";

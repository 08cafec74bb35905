//! The journal handle: the interface for writers and readers.

use std::sync::Arc;
use std::task::Waker;

use crate::extent::{ExtentError, LocatedRecord, Reach};
use crate::followers::{Follow, Following};
use crate::guard::Guard;
use crate::health::{Health, HealthChanges};
use crate::outcomes::{Outcomes, Stripes};
use crate::read::{self, Read, ReadError, ReadLimit};
use crate::record::RecordView;
use crate::round::Round;
use crate::segment::ShardEnd;
use crate::shard::{BlockOrder, Shard, State};
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::threads::Threads;
use crate::ticket::{Stage, Status, Ticket};
use crate::{Commit, Index, Position, Reign, ShardId, StreamId};

/// Bytes that a block has for its header and a few small records besides the largest one.
const BESIDE: usize = 1024;

/// An open journal. See the crate's documentation.
///
/// Aligned so that the counts of an `Arc` of it do not share a cache line with what every append
/// reads.
#[derive(Debug)]
#[repr(align(128))]
pub struct Journal {
    shared: Arc<Shared>,
    stripes: Stripes,
    /// Joined when the journal is dropped. `None` in a simulation, and in a view.
    _threads: Option<Threads>,
    /// The only reigns in which this handle appends; `None` for any.
    bounds: Option<Bounds>,
}

/// The reigns in which a view of a journal appends.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// The reign of each shard, with its term.
    reigns: Arc<[(Reign, u64)]>,
}

impl Bounds {
    /// Returns the reign of a shard.
    pub(crate) fn reign(&self, shard: ShardId) -> Reign {
        self.reigns[usize::from(shard.0)].0
    }

    /// Returns whether both are of one view.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.reigns, &other.reigns)
    }
}

/// Offsets of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// Offset of the first record.
    pub start: u64,
    /// Offset of the next record, whether the one before it is durable or not.
    pub next: u64,
    /// End of the stream for readers.
    pub next_durable: u64,
}

/// Write statistics since the journal was opened, and the current queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of syncs of the line.
    pub syncs: u64,
    /// Number of blocks, including those that only carry a hint.
    pub blocks: u64,
    /// Number of records.
    pub records: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Bytes that wait for the disk.
    pub queued_bytes: u64,
    /// Segments that are not filed, the active one included.
    pub segments: usize,
}

/// A refused cut of a shard's tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// A block that would become void is committed.
    #[error("block {} is committed", committed.0)]
    Committed {
        /// The last committed block.
        committed: Index,
    },
    /// The journal has failed.
    #[error("the journal has failed")]
    Failed,
}

impl Journal {
    pub(crate) fn new(shared: Arc<Shared>, threads: Option<Threads>) -> Journal {
        Journal {
            stripes: Stripes::new(&shared),
            shared,
            _threads: threads,
            bounds: None,
        }
    }

    /// Returns a handle that appends only in these reigns, one per shard, each with its term. When
    /// one of them has ended, its appends to that shard fail with
    /// [`AppendError::Moved`](crate::AppendError::Moved), also in a later reign of this node. So
    /// state that was loaded in a reign cannot write in another. The journal must outlive the view.
    ///
    /// # Panics
    ///
    /// Panics if there is not a reign for each shard.
    pub fn in_reigns(&self, reigns: &[(Reign, u64)]) -> Journal {
        assert_eq!(reigns.len(), self.shared.shards.len(), "a reign per shard");
        Journal {
            shared: self.shared.clone(),
            stripes: self.stripes.clone(),
            _threads: None,
            bounds: Some(Bounds {
                reigns: reigns.into(),
            }),
        }
    }

    /// Returns the number of shards. Other methods panic if they are passed a shard that does not
    /// exist.
    pub fn shard_count(&self) -> u16 {
        self.shared.shards.len() as u16
    }

    /// Returns the limit on a record's size in bytes. A block has room for other records next to
    /// the largest one.
    pub fn record_size_max(&self) -> usize {
        let limits = &self.shared.limits;
        limits.record.min(limits.block - BESIDE)
    }

    /// Returns the journal's id; it never changes.
    pub fn id(&self) -> u64 {
        self.shared.journal_id
    }

    /// Returns the journal's life: the sequence of the first segment that this start began, from 1.
    /// It is durable, and it increases with every start after one in which something became
    /// durable.
    pub fn life(&self) -> u64 {
        self.shared.segments.lock().first_own
    }

    /// Returns the leader epoch of a shard: the term of the shard's reign for a
    /// [view](Journal::in_reigns), otherwise the journal's life plus the term of the shard's last
    /// block, which is 0 if the node was never in a cluster. It increases with every change of the
    /// leader, on all nodes, and when a node begins or leaves a cluster.
    pub fn leader_epoch(&self, shard: ShardId) -> u64 {
        match &self.bounds {
            Some(bounds) => bounds.reigns[usize::from(shard.0)].1,
            None => self.life() + self.last_taken(shard).term,
        }
    }

    /// Locks a shard to decide and append. `now_ms` is in milliseconds since 1970.
    pub fn lock(&self, shard: ShardId, now_ms: u64) -> Guard<'_> {
        let reign = self.bounds.as_ref().map(|bounds| bounds.reign(shard));
        Guard::new(&self.shared, self.shared.shard(shard), reign, now_ms)
    }

    /// Begins a group of appends that share one sync.
    pub fn round(&self) -> Round {
        Round::new(self.stripes.own(), self.bounds.clone())
    }

    /// Returns a handle to the outcomes of the blocks.
    pub fn outcomes(&self) -> Outcomes {
        self.stripes.own()
    }

    /// Returns whether a ticket's block is committed.
    #[inline]
    pub fn status(&self, ticket: Ticket) -> Status {
        self.status_at(Stage::Committed, ticket)
    }

    /// Returns whether a ticket's block has reached a stage.
    #[inline]
    pub fn status_at(&self, stage: Stage, ticket: Ticket) -> Status {
        self.shard(ticket.shard).publication.status(ticket, stage)
    }

    /// Wakes `waker` once when the ticket's block is committed or will never be. Returns the state
    /// now; unless that is pending, the waker is not stored. A connection needs one waker only, for
    /// its last ticket.
    pub fn notify(&self, ticket: Ticket, waker: &Waker) -> Status {
        self.notify_at(Stage::Committed, ticket, waker)
    }

    /// Like [`Journal::notify`], for a stage.
    pub fn notify_at(&self, stage: Stage, ticket: Ticket, waker: &Waker) -> Status {
        let publication = &self.shard(ticket.shard).publication;
        publication.notify(ticket, stage, waker)
    }

    /// Wakes `waker` when there may be room for appends to a shard: when its next block is written,
    /// if too many bytes are not committed, when its next block is committed, and if the shard is
    /// paused, at the end of the pause. Returns false, and does not store the waker, if nothing frees
    /// room.
    pub fn notify_room(&self, shard: ShardId, waker: &Waker) -> bool {
        let target = self.shard(shard);
        let (end, is_uncommitted) = {
            let state = target.state.lock();
            if state.is_paused() {
                target.notify_resumed(waker);
                return true;
            }
            let block_max = (self.shared.limits.record + BESIDE) as u64;
            let bytes_max = self.shared.limits.uncommitted;
            let is_uncommitted = state.uncommitted_bytes() + block_max > bytes_max;
            (state.end().index, is_uncommitted)
        };
        let notify = |stage| {
            let next = Index(target.publication.last(stage).0 + 1);
            let notify = || target.publication.notify_block(next, stage, waker);
            next <= end && notify() == Status::Pending
        };
        let is_unwritten = notify(Stage::Written);
        is_uncommitted && notify(Stage::Committed) || is_unwritten
    }

    /// Sleeps until the ticket's block is committed or will never be.
    pub fn wait(&self, ticket: Ticket) -> Status {
        self.shard(ticket.shard).publication.wait(ticket)
    }

    /// Reads the durable (committed) records of a stream from an offset on. An unknown stream is
    /// empty.
    pub fn read(
        &self,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Read, ReadError> {
        read::read(&self.shared, self.shard(shard), stream, from, limit)
    }

    /// Reads like [`Journal::read`], and passes each unfiled record that it reads to `visit`, with
    /// the time of its block, followed by the records of other streams up to the next one of the
    /// stream or the end of the block. Records of a block that is filed meanwhile may be passed
    /// twice. This saves a second read of the blocks for records that were written with those of the
    /// stream.
    pub fn read_and_visit(
        &self,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        limit: ReadLimit,
        mut visit: impl FnMut(RecordView<'_>, u64),
    ) -> Result<Read, ReadError> {
        let target = self.shard(shard);
        read::read_and_visit(&self.shared, target, stream, from, limit, &mut visit)
    }

    /// Reads like [`Journal::read`] but without disk access. Returns `None` if memory does not hold
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

    /// Reads like [`Journal::read`]; `None` if the records are not within reach.
    pub fn read_within(
        &self,
        reach: Reach,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read>, ReadError> {
        match reach {
            Reach::Memory => self.read_in_memory(shard, stream, from, limit),
            Reach::Disk => self.read(shard, stream, from, limit).map(Some),
        }
    }

    /// Reads like [`Journal::read`], but leaves long records that are filed in their files. They are
    /// checked when they are read from the device. Returns `None` if the records are not within
    /// reach.
    pub fn locate(
        &self,
        shard: ShardId,
        stream: StreamId,
        from: u64,
        limit: ReadLimit,
        reach: Reach,
    ) -> Result<Option<Read<LocatedRecord>>, ReadError> {
        let target = self.shard(shard);
        read::locate(&self.shared, target, stream, from, limit, reach)
    }

    /// Wakes `waker` once when the stream has a durable record at `from` or later, or starts after
    /// it.
    pub fn follow(&self, shard: ShardId, stream: StreamId, from: u64, waker: &Waker) -> Follow {
        let target = self.shard(shard);
        target.followers.add(shard, stream, waker, || {
            let state = self.stream(shard, stream);
            self.shared.health.is_failed()
                || state.is_some_and(|state| state.next_durable > from || state.start > from)
        })
    }

    /// Ends a wait begun by [`Journal::follow`], if it has not ended already.
    pub fn unfollow(&self, following: &Following) {
        self.shard(following.shard).followers.remove(following);
    }

    /// Returns the offsets of a stream; `None` if nothing was ever appended to it.
    pub fn stream(&self, shard: ShardId, stream: StreamId) -> Option<StreamState> {
        let state = self.shard(shard).state.lock();
        let entry = state.streams.get(&stream)?;
        Some(StreamState {
            start: entry.start,
            next: entry.next,
            next_durable: entry.next_at(state.committed()),
        })
    }

    /// Returns up to `limit` streams of a shard with an id above `after`, ascending.
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

    /// Returns the bytes of a stream's payloads from its start on. Sizes of filed records are read
    /// from disk.
    pub fn bytes(&self, shard: ShardId, stream: StreamId) -> Result<u64, ExtentError> {
        let state = self.shard(shard).state.lock();
        let Some(entry) = state.streams.get(&stream) else {
            return Ok(0);
        };
        let start = entry.start;
        let unfiled = entry
            .runs()
            .filter(|run| state.tail.location(run.index).is_some());
        let in_line = unfiled.map(|run| u64::from(run.bytes)).sum::<u64>();
        let extents = state.extents.clone();
        drop(state);
        Ok(extents.bytes(shard, stream, start)? + in_line)
    }

    /// Returns the offset before which to trim a stream to about `bytes_max` bytes: at most one
    /// record less, at most one block's records more. The offset is never beyond the durable end.
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
        let mut bytes = 0;
        for run in entry.runs().rev() {
            if state.tail.location(run.index).is_none() {
                break;
            }
            bytes += u64::from(run.bytes);
            if bytes >= bytes_max {
                return Ok(run
                    .first
                    .max(entry.start)
                    .min(entry.next_at(state.committed())));
            }
        }
        let start = entry.start;
        let extents = state.extents.clone();
        drop(state);
        let offset = extents.offset_for_bytes(shard, stream, bytes_max - bytes)?;
        Ok(offset.unwrap_or(start).max(start))
    }

    /// Returns the offset before which to trim a stream so that it retains every record appended at
    /// `time_ms` or later, and not many older ones.
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
            let location = state.tail.location(run.index);
            location.is_some_and(|location| location.time_ms >= time_ms)
        });
        let next_durable = entry.next_at(state.committed());
        let in_line = young.map_or(next_durable, |run| run.first.min(next_durable));
        let start = entry.start;
        let extents = state.extents.clone();
        drop(state);
        let filed = extents.offset_for_time(shard, stream, start, time_ms)?;
        Ok(filed.unwrap_or(in_line).max(start))
    }

    /// Begins a reign over a shard: from now on it accepts appends, and its blocks have this term,
    /// which must not be lower than that of the shard's last block. Ends the current reign first, if
    /// there is one.
    pub fn begin_reign(&self, shard: ShardId, term: u64) -> Reign {
        self.begin_reign_in(BlockOrder::Alone, shard, term)
    }

    pub(crate) fn begin_reign_in(&self, order: BlockOrder, shard: ShardId, term: u64) -> Reign {
        let target = self.shard(shard);
        let mut state = target.state.lock();
        self.end_reign_of(target, &mut state);
        let reign = state.begin_reign(term, order);
        target.publication.begin_reign(reign);
        drop(state);
        target.wake_decided();
        reign
    }

    /// Ends the current reign over a shard, if there is one. Blocks that were not taken, by the line
    /// or by [`Journal::append_decided`], are dropped, and their tickets are [`Status::Moved`]. The
    /// others stay pending until they are committed or cut.
    pub fn end_reign(&self, shard: ShardId) {
        let target = self.shard(shard);
        self.end_reign_of(target, &mut target.state.lock());
        target.wake_decided();
    }

    pub(crate) fn end_reign_of(&self, target: &Shard, state: &mut State) {
        if let Some((taken, dropped_bytes)) = state.end_reign() {
            let queued_bytes = &self.shared.queued_bytes;
            queued_bytes.fetch_sub(dropped_bytes, Ordering::Relaxed);
            target.publication.end_reign(taken);
        }
    }

    /// Returns a shard's last block, durable or not.
    pub fn shard_end(&self, shard: ShardId) -> ShardEnd {
        self.shard(shard).state.lock().end()
    }

    /// Returns the index of a shard's last block that has reached a stage.
    pub fn last(&self, shard: ShardId, stage: Stage) -> Index {
        self.shard(shard).publication.last(stage)
    }

    /// Commits the shard's blocks up to `index`, those that are not on disk here as soon as they
    /// are. The line must have taken the blocks that are here, and they must be the committed ones.
    /// Requires [`Commit::ByCaller`].
    pub fn commit(&self, shard: ShardId, index: Index) {
        assert_eq!(self.shared.commit, Commit::ByCaller, "{COMMIT_BY_CALLER}");
        let target = self.shard(shard);
        let mut state = target.state.lock();
        let before = state.committed();
        state.commit(index, |trim| self.shared.note_trim(shard, trim));
        let touched = target.touched_after(&state, before);
        let progress = target.advance(&state);
        drop(state);
        target.publication.wake(progress);
        target.followers.wake_scope(touched);
    }

    /// Voids a shard's blocks from `index` on, on disk or not, and appends a block that says so. A
    /// follower does this if its tail differs from the leader's. Ends the current reign, if there is
    /// one.
    pub fn cut(&self, shard: ShardId, index: Index) -> Result<(), CutError> {
        if self.shared.health.is_failed() {
            return Err(CutError::Failed);
        }
        let target = self.shard(shard);
        let mut state = target.state.lock();
        let committed = state.last_commit_known();
        if index <= committed {
            return Err(CutError::Committed { committed });
        }
        self.end_reign_of(target, &mut state);
        let is_cut = index <= state.end().index;
        if is_cut {
            state.cut(index);
            target.publication.cut(index);
        }
        drop(state);
        target.wake_decided();
        if is_cut {
            self.shared.doorbell.ring(shard);
        }
        Ok(())
    }

    /// Returns the position before which the line is durable.
    pub fn durable_position(&self) -> Position {
        self.shared.segments.lock().durable
    }

    /// Returns whether the journal accepts appends, and why not.
    pub fn health(&self) -> Health {
        self.shared.health.get()
    }

    /// Returns how often each state of [`Journal::health`] was entered since the journal was
    /// opened.
    pub fn health_changes(&self) -> HealthChanges {
        self.shared.health.changes()
    }

    /// Returns true if appends wait for a free segment. That is normal for a moment under load,
    /// until filing frees one.
    pub fn is_starved(&self) -> bool {
        self.shared.is_starved.load(Ordering::SeqCst)
    }

    /// Returns the number of free segments.
    pub fn spare_segments(&self) -> usize {
        self.shared.spares.ready()
    }

    /// Returns write statistics since the journal was opened, and the current queue.
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

    pub(crate) fn bounds(&self) -> Option<&Bounds> {
        self.bounds.as_ref()
    }

    pub(crate) fn shard(&self, shard: ShardId) -> &Shard {
        self.shared.shard(shard)
    }
}

const COMMIT_BY_CALLER: &str = "`commit` requires `Commit::ByCaller`";

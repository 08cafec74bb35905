//! A shard: its streams, its durable blocks and the block that is being built.
//!
//! One lock guards all of it. A writer decides and encodes under the lock, so records are in the
//! line in the order of decisions. Durable blocks are published under the lock too, so a reader
//! sees streams, block positions and extents of the same moment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::buffers::Buffers;
use crate::extent::ExtentSet;
use crate::followers::{Followers, WakeScope};
use crate::publication::{Progress, Publication};
use crate::record::{self, RecordKind, RecordView};
use crate::segment::ShardEnd;
use crate::stream::Stream;
use crate::sync::Mutex;
use crate::tail::{BlockLocation, Tail};
use crate::{Index, Position, Reign, ShardId, StreamId};

/// Size at which a block is closed when the next writer comes. Reading one record reads its whole
/// block.
const BLOCK_SIZE_CLOSE: usize = 1 << 20;

/// Capacity limit of a new block. Otherwise a block is allocated as large as the last one was, so
/// that it is not copied repeatedly while it grows.
const BLOCK_CAPACITY_MAX: usize = BLOCK_SIZE_CLOSE + BLOCK_SIZE_CLOSE / 4;

/// Milliseconds by which the caller's clock may be behind the last record without record times
/// going back: one minute. Up to that they stand still, so that small corrections of the clock
/// leave records in time order.
const TIME_BACK_MS_MAX: u64 = 60_000;

/// A shard of the journal.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) state: Mutex<State>,
    pub(crate) publication: Publication,
    pub(crate) followers: Followers,
}

/// The part of a shard that the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    id: ShardId,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    pub(crate) tail: Tail,
    pub(crate) extents: Arc<ExtentSet>,
    building: Option<BuiltBlock>,
    buffers: Buffers,
    closed: Vec<BuiltBlock>,
    /// Index of the next block.
    next: Index,
    term: u64,
    /// The current reign, if there is one. Without it, nothing is appended.
    reign: Option<Reign>,
    reigns: u32,
    /// Time of the newest record.
    time_ms: u64,
    capacity: usize,
    /// Readers see blocks up to this index.
    committed: Index,
    /// Blocks up to this index are committed as soon as they are on disk here.
    commit_known: Index,
    /// Trims in blocks that are not committed, in order.
    trims: VecDeque<Trim>,
    /// Number of cuts that are not in the line yet.
    cuts_pending: usize,
}

/// A trim or an erase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trim {
    pub(crate) index: Index,
    pub(crate) stream: StreamId,
    pub(crate) start: u64,
    pub(crate) kind: RecordKind,
    pub(crate) time_ms: u64,
}

/// A block that is built and not written yet.
#[derive(Debug)]
pub(crate) struct BuiltBlock {
    pub(crate) kind: BlockKind,
    pub(crate) shard: ShardId,
    pub(crate) index: Index,
    pub(crate) term: u64,
    pub(crate) count: u32,
    pub(crate) time_ms: u64,
    /// Room for the header, followed by the body.
    pub(crate) bytes: Vec<u8>,
}

/// A block that is on disk.
#[derive(Debug)]
pub(crate) struct WrittenBlock {
    pub(crate) kind: BlockKind,
    pub(crate) index: Index,
    pub(crate) location: BlockLocation,
    /// Bytes of memory that the body occupies.
    pub(crate) room: usize,
    pub(crate) body: Bytes,
}

impl Shard {
    pub(crate) fn new(id: ShardId, end: ShardEnd) -> Shard {
        Shard {
            id,
            state: Mutex::new(State::new(id, end)),
            publication: Publication::default(),
            followers: Followers::default(),
        }
    }

    /// Publishes how far the shard is written and committed. The caller holds the lock of the
    /// state, and wakes the waiters after releasing it.
    pub(crate) fn advance(&self, state: &State) -> Progress {
        self.publication.advance(state.tail.last(), state.committed)
    }

    /// Returns the followers to wake for the blocks that were committed after `before`. The caller
    /// holds the lock of the state: a follower that registers later finds the blocks itself.
    pub(crate) fn touched_after(&self, state: &State, before: Index) -> WakeScope {
        if self.followers.is_empty() || state.committed == before {
            return WakeScope::Empty;
        }
        let bodies = state.committed_after(before);
        bodies.map_or(WakeScope::All, WakeScope::StreamsIn)
    }

    /// Wakes the waiters whose tickets a change of the reign or a cut has decided, and all
    /// followers.
    pub(crate) fn wake_decided(&self) {
        self.publication.wake_decided();
        self.followers.wake_all();
    }
}

impl State {
    fn new(id: ShardId, end: ShardEnd) -> State {
        let next = Index(end.index.0 + 1);
        State {
            id,
            streams: BTreeMap::new(),
            tail: Tail::starting_at(next),
            extents: Arc::default(),
            building: None,
            buffers: Buffers::default(),
            closed: Vec::new(),
            next,
            term: end.term,
            reign: None,
            reigns: 0,
            time_ms: 0,
            capacity: 0,
            committed: end.index,
            commit_known: end.index,
            trims: VecDeque::new(),
            cuts_pending: 0,
        }
    }

    /// Returns the shard's last block, on disk or not.
    pub(crate) fn end(&self) -> ShardEnd {
        ShardEnd {
            index: Index(self.next.0 - 1),
            term: self.term,
        }
    }

    /// Returns the index up to which readers see blocks.
    pub(crate) fn committed(&self) -> Index {
        self.committed
    }

    /// Returns the current reign.
    pub(crate) fn reign(&self) -> Option<Reign> {
        self.reign
    }

    /// Begins a reign; its blocks have this term. There must be no current one.
    pub(crate) fn begin_reign(&mut self, term: u64) -> Reign {
        debug_assert_eq!(self.reign, None, "one reign at a time");
        self.reigns = self
            .reigns
            .checked_add(1)
            .expect("numbers are never used again");
        self.term = term;
        *self.reign.insert(Reign(self.reigns))
    }

    /// Ends the current reign. Drops the blocks that the line has not taken. Returns the last taken
    /// block, and the bytes that were dropped; `None` if there is no reign.
    pub(crate) fn end_reign(&mut self) -> Option<(Index, u64)> {
        self.reign.take()?;
        let closed = self
            .closed
            .extract_if(.., |it| it.kind == BlockKind::Records);
        let dropped: Vec<_> = closed.chain(self.building.take()).collect();
        if let Some(first) = dropped.first() {
            self.void_from(first.index);
        }
        let size = |it: &BuiltBlock| (it.bytes.len() - BLOCK_HEADER_SIZE) as u64;
        Some((self.end().index, dropped.iter().map(size).sum()))
    }

    /// Returns the size of the block being built; 0 if there is none.
    pub(crate) fn building_size(&self) -> usize {
        self.building.as_ref().map_or(0, |built| built.bytes.len())
    }

    /// Returns true if the next writer should begin a new block.
    pub(crate) fn is_due_to_close(&self) -> bool {
        self.building_size() >= BLOCK_SIZE_CLOSE
    }

    /// Closes the block being built; the next record begins a new one.
    pub(crate) fn close_block(&mut self) {
        if let Some(built) = self.building.take() {
            self.capacity = built.bytes.len().min(BLOCK_CAPACITY_MAX);
            self.closed.push(built);
        }
    }

    /// Returns the index of the block that the next record goes into.
    pub(crate) fn building_index(&self) -> Index {
        self.building
            .as_ref()
            .map_or(self.next, |built| built.index)
    }

    /// Appends a record to a stream. `offset` must be the stream's next offset.
    pub(crate) fn append(
        &mut self,
        stream: StreamId,
        offset: u64,
        tag: u8,
        payload: &[u8],
        now_ms: u64,
    ) {
        let record = RecordView {
            stream,
            offset,
            kind: RecordKind::Data,
            tag,
            bytes: payload,
        };
        let (index, place) = self.encode(&record, now_ms);
        let entry = self.streams.entry(stream).or_default();
        entry.push(index, place, payload.len() as u32);
    }

    /// Appends a trim or an erase. It takes effect when its block is committed.
    pub(crate) fn mark(&mut self, kind: RecordKind, stream: StreamId, start: u64, now_ms: u64) {
        let record = RecordView {
            stream,
            offset: start,
            kind,
            tag: 0,
            bytes: &[],
        };
        let (index, _) = self.encode(&record, now_ms);
        self.trims.push_back(Trim {
            index,
            stream,
            start,
            kind,
            time_ms: self.time_ms,
        });
    }

    fn encode(&mut self, record: &RecordView<'_>, now_ms: u64) -> (Index, u32) {
        // If the clock was ahead for a while and is right again, the record times follow it back.
        if now_ms > self.time_ms || self.time_ms - now_ms > TIME_BACK_MS_MAX {
            self.time_ms = now_ms;
        }
        let time_ms = self.time_ms;
        let built = match &mut self.building {
            Some(built) => built,
            None => {
                let built = self.begin(BlockKind::Records, self.next, self.capacity);
                self.next.0 += 1;
                self.building.insert(built)
            }
        };
        let place = built.bytes.len() - BLOCK_HEADER_SIZE;
        record::encode(record, &mut built.bytes);
        built.count += 1;
        built.time_ms = time_ms;
        (built.index, place as u32)
    }

    fn begin(&mut self, kind: BlockKind, index: Index, capacity: usize) -> BuiltBlock {
        let mut bytes = self.buffers.take(capacity.max(BLOCK_HEADER_SIZE));
        bytes.resize(BLOCK_HEADER_SIZE, 0);
        BuiltBlock {
            kind,
            shard: self.id,
            index,
            term: self.term,
            count: 0,
            time_ms: self.time_ms,
            bytes,
        }
    }

    /// Moves the built blocks to `queue`, in order.
    pub(crate) fn take_built(&mut self, queue: &mut VecDeque<BuiltBlock>) {
        self.close_block();
        queue.extend(self.closed.drain(..));
    }

    /// Records that a block is on disk, directly after the previous one.
    pub(crate) fn place(&mut self, written: WrittenBlock) {
        match written.kind {
            BlockKind::Cut => self.cuts_pending -= 1,
            _ => self.tail.push(written.location, written.body),
        }
    }

    /// Drops the bodies of blocks up to `index` from memory.
    pub(crate) fn forget(&mut self, index: Index) {
        self.tail.forget(index, |body| self.buffers.give(body));
    }

    /// Frees the memory that is held for future blocks.
    pub(crate) fn rest(&mut self) {
        self.buffers.clear();
        self.capacity = 0;
    }

    /// Shows blocks up to `index` to readers, now or as soon as they are on disk here, and applies
    /// their trims, each of which is passed to `visit`.
    pub(crate) fn commit(&mut self, index: Index, visit: impl FnMut(&Trim)) {
        self.commit_known = self.commit_known.max(index);
        self.commit_known(visit);
    }

    /// Like [`State::commit`], for the blocks that are known to be committed and on disk.
    pub(crate) fn commit_known(&mut self, mut visit: impl FnMut(&Trim)) {
        let index = self.commit_known.min(self.tail.last());
        self.committed = self.committed.max(index);
        let committed = self.trims.partition_point(|trim| trim.index <= index);
        for trim in self.trims.drain(..committed) {
            if let Some(stream) = self.streams.get_mut(&trim.stream) {
                stream.start = stream.start.max(trim.start);
                stream.next = stream.next.max(stream.start);
            }
            visit(&trim);
        }
    }

    /// Voids the blocks from `index` on and builds a block that says so. They must be above the
    /// committed index, and no block of the shard may be pending.
    pub(crate) fn cut(&mut self, index: Index) {
        self.void_from(index);
        let built = self.begin(BlockKind::Cut, index, 0);
        self.closed.push(built);
        self.cuts_pending += 1;
    }

    /// Returns true if all blocks of the shard before a position are committed, or voided by a cut
    /// that is in the line.
    pub(crate) fn is_settled_before(&self, position: Position) -> bool {
        self.cuts_pending == 0 && self.last_before(position) <= self.committed
    }

    /// Drops all blocks from `index` on.
    pub(crate) fn void_from(&mut self, index: Index) {
        for stream in self.streams.values_mut() {
            stream.cut(index);
        }
        self.trims.retain(|trim| trim.index < index);
        self.tail.cut(index);
        self.next = index;
    }

    /// Adds a block that recovery found. The offsets of its records must have been checked.
    pub(crate) fn replay(&mut self, index: Index, term: u64, location: BlockLocation, body: &[u8]) {
        self.next = Index(index.0 + 1);
        self.term = term;
        self.time_ms = self.time_ms.max(location.time_ms);
        self.tail.push_unread(location);
        for (place, record) in record::records(body).map_while(Result::ok) {
            let stream = self.streams.entry(record.stream).or_default();
            match record.kind {
                RecordKind::Data => {
                    stream.next = stream.next.max(record.offset);
                    stream.push(index, place as u32, record.bytes.len() as u32);
                }
                RecordKind::Trim | RecordKind::Erase => self.trims.push_back(Trim {
                    index,
                    stream: record.stream,
                    start: record.offset,
                    kind: record.kind,
                    time_ms: location.time_ms,
                }),
            }
        }
    }

    /// Adds empty entries for missing blocks up to `last`; they have no records.
    pub(crate) fn skip_to(&mut self, last: Index, position: Position) {
        while self.next <= last {
            self.tail.push_unread(BlockLocation {
                position,
                length: 0,
                time_ms: self.time_ms,
            });
            self.next.0 += 1;
        }
    }

    /// Returns the bodies of the blocks after `before`, up to the committed one; `None` if some of
    /// them are not in memory.
    fn committed_after(&self, before: Index) -> Option<Vec<Bytes>> {
        let indexes = before.0 + 1..=self.committed.0;
        indexes.map(|index| self.tail.body(Index(index))).collect()
    }

    /// Returns the index of the shard's last block before a position.
    fn last_before(&self, position: Position) -> Index {
        self.tail.last_before(position)
    }
}

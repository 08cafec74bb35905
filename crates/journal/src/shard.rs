//! A shard: its streams, and the block that is being built.
//!
//! One lock. Whoever appends decides and encodes under it, so the order of decisions is the order
//! of records in the line. What is durable is published under it too, so that a reader sees a
//! stream's table, the places of its blocks and the extents of one moment.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::buffers::Buffers;
use crate::durable::Publication;
use crate::extent::ExtentSet;
use crate::follow::Followers;
use crate::record::{self, RecordKind, RecordView};
use crate::segment::ShardEnd;
use crate::stream::Stream;
use crate::sync::Mutex;
use crate::tail::{Placed, Tail};
use crate::{Index, Position, ShardId, StreamId};

/// A block that has this size is closed when the next writer comes: who reads one record back
/// reads its block.
const BLOCK_SIZE_CLOSE: usize = 1 << 20;

/// A new block has room for as much as the last one held, up to here: what comes while the disk is
/// busy is not copied again and again as it grows.
const BLOCK_CAPACITY_MAX: usize = BLOCK_SIZE_CLOSE + BLOCK_SIZE_CLOSE / 4;

/// Time of records goes back when the caller's clock is this many milliseconds behind the last
/// record: one minute. Below that it stands still, so that small corrections keep records in the
/// order of their times.
const TIME_BACK_MS_MAX: u64 = 60_000;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) state: Mutex<State>,
    pub(crate) publication: Publication,
    pub(crate) followers: Followers,
}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    id: ShardId,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    pub(crate) tail: Tail,
    pub(crate) extents: Arc<ExtentSet>,
    building: Option<Built>,
    buffers: Buffers,
    closed: Vec<Built>,
    /// The next block's.
    next: Index,
    term: u64,
    /// Blocks' times never go back.
    time_ms: u64,
    capacity: usize,
    /// Readers see blocks up to here.
    committed: Index,
    /// In blocks that are not committed, in order.
    trims: VecDeque<Trim>,
    /// Cuts that are not in the line yet.
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

/// A block that waits for its place in the line.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) kind: BlockKind,
    pub(crate) shard: ShardId,
    pub(crate) index: Index,
    pub(crate) term: u64,
    pub(crate) count: u32,
    pub(crate) time_ms: u64,
    /// Room for the header, then the body.
    pub(crate) bytes: Vec<u8>,
}

/// A block that is on disk.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) kind: BlockKind,
    pub(crate) index: Index,
    pub(crate) placed: Placed,
    /// Bytes of memory that the body takes.
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
            time_ms: 0,
            capacity: 0,
            committed: end.index,
            trims: VecDeque::new(),
            cuts_pending: 0,
        }
    }

    /// Its last block, whether on disk or not.
    pub(crate) fn end(&self) -> ShardEnd {
        ShardEnd {
            index: Index(self.next.0 - 1),
            term: self.term,
        }
    }

    /// Readers see blocks up to here.
    pub(crate) fn committed(&self) -> Index {
        self.committed
    }

    /// Blocks that are begun from now on carry this term.
    pub(crate) fn set_term(&mut self, term: u64) {
        self.term = term;
    }

    /// Bytes that the block being built has already.
    pub(crate) fn building_size(&self) -> usize {
        self.building.as_ref().map_or(0, |built| built.bytes.len())
    }

    /// Whether the next writer should find an empty block.
    pub(crate) fn is_due_to_close(&self) -> bool {
        self.building_size() >= BLOCK_SIZE_CLOSE
    }

    /// Closes the block being built; the next record begins another.
    pub(crate) fn close_block(&mut self) {
        if let Some(built) = self.building.take() {
            self.capacity = built.bytes.len().min(BLOCK_CAPACITY_MAX);
            self.closed.push(built);
        }
    }

    /// The next record's block.
    pub(crate) fn building_index(&self) -> Index {
        self.building
            .as_ref()
            .map_or(self.next, |built| built.index)
    }

    /// Appends a record to a stream, whose next offset it gets.
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

    /// Adds a trim or an erase; it counts when its block is committed.
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
        // A clock that was ahead for a while, and is right again, is followed back.
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

    fn begin(&mut self, kind: BlockKind, index: Index, capacity: usize) -> Built {
        let mut bytes = self.buffers.take(capacity.max(BLOCK_HEADER_SIZE));
        bytes.resize(BLOCK_HEADER_SIZE, 0);
        Built {
            kind,
            shard: self.id,
            index,
            term: self.term,
            count: 0,
            time_ms: self.time_ms,
            bytes,
        }
    }

    /// Hands over what is built, in order. The table keeps nothing of it but places.
    pub(crate) fn take_built(&mut self, queue: &mut VecDeque<Built>) {
        self.close_block();
        queue.extend(self.closed.drain(..));
    }

    /// A block is on disk; it follows the last one that was. Returns the index up to which the
    /// shard is durable.
    pub(crate) fn place(&mut self, written: Written) -> Index {
        match written.kind {
            BlockKind::Cut => {
                self.cuts_pending -= 1;
                Index(written.index.0 - 1)
            }
            _ => {
                self.tail.push(written.placed, written.body);
                written.index
            }
        }
    }

    /// Blocks up to `index` need not be in memory any more.
    pub(crate) fn forget(&mut self, index: Index) {
        self.tail.forget(index, |body| self.buffers.give(body));
    }

    /// Gives back the memory that is held for blocks to come.
    pub(crate) fn rest(&mut self) {
        self.buffers.clear();
        self.capacity = 0;
    }

    /// Readers see blocks up to `index`. Shows what is trimmed by it.
    pub(crate) fn commit(&mut self, index: Index, mut visit: impl FnMut(&Trim)) {
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

    /// Blocks from `index` on are void, and a block that says so is built. They are above the
    /// committed index, and none of the shard's blocks waits for its place.
    pub(crate) fn cut(&mut self, index: Index) {
        self.void_from(index);
        let built = self.begin(BlockKind::Cut, index, 0);
        self.closed.push(built);
        self.cuts_pending += 1;
    }

    /// Whether everything of the shard before a position is committed, or void by a cut that is in
    /// the line.
    pub(crate) fn is_settled_before(&self, position: Position) -> bool {
        self.cuts_pending == 0 && self.last_before(position) <= self.committed
    }

    /// Forgets blocks from `index` on.
    pub(crate) fn void_from(&mut self, index: Index) {
        for stream in self.streams.values_mut() {
            stream.cut(index);
        }
        self.trims.retain(|trim| trim.index < index);
        self.tail.cut(index);
        self.next = index;
    }

    /// Takes back in a block that recovery found. Its records' offsets were checked.
    pub(crate) fn replay(&mut self, index: Index, term: u64, placed: Placed, body: &[u8]) {
        self.next = Index(index.0 + 1);
        self.term = term;
        self.time_ms = self.time_ms.max(placed.time_ms);
        self.tail.push_unread(placed);
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
                    time_ms: placed.time_ms,
                }),
            }
        }
    }

    /// Blocks up to `last` are not there; nothing will be looked for in them.
    pub(crate) fn skip_to(&mut self, last: Index, position: Position) {
        while self.next <= last {
            self.tail.push_unread(Placed {
                position,
                length: 0,
                time_ms: self.time_ms,
            });
            self.next.0 += 1;
        }
    }

    /// Where the shard's last block before a position is.
    fn last_before(&self, position: Position) -> Index {
        self.tail.last_before(position)
    }
}

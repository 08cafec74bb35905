//! The shards as replicated logs: appending blocks that a consensus has decided, reading them by
//! index, and purging.
//!
//! The journal knows terms and indexes and no consensus. Its caller elects leaders, sends blocks to
//! other nodes, and decides what is committed. A block that was handed over can be read at once, and
//! is acknowledged to the leader when it is [`Stage::Written`](crate::Stage::Written).

use std::ops::Range;
use std::task::Waker;

use bytes::Bytes;

use crate::options::Commit;
use crate::read::read_whole_block;
use crate::segment::ShardEnd;
use crate::shard::{BlockOrder, DecidedBlock, DecidedError, Origin, Shard, State};
use crate::sync::Ordering;
use crate::tail::BlockLocation;
use crate::ticket::{Stage, Status};
use crate::{Index, Journal, Position, Reign, ShardId};

/// Blocks that cannot be read by index. There is no partial result.
#[derive(Debug, thiserror::Error)]
pub enum ReadBlocksError {
    /// The blocks up to this one are filed.
    #[error("the blocks up to {} are filed", last.index.0)]
    Purged {
        /// The last filed block.
        last: ShardEnd,
    },
    /// A block does not match its checksum or its place.
    #[error("block {} at position {} is damaged", index.0, position.0)]
    Damaged {
        /// Index of the block.
        index: Index,
        /// Position of the block.
        position: Position,
    },
    /// An I/O error.
    #[error("cannot read the write-ahead log: {0}")]
    Io(#[from] std::io::Error),
}

/// A shard that keeps segments from being filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StalledShard {
    /// The shard.
    pub shard: ShardId,
    /// Bytes of the line, of all shards, from the first block of this shard on that is neither
    /// committed nor cut.
    pub held_bytes: u64,
}

/// A block to read.
enum PlannedBlock {
    InMemory(DecidedBlock),
    OnDisk(Index, BlockLocation),
}

impl Journal {
    /// Begins a reign like [`Journal::begin_reign`], whose blocks a consensus orders: a closed block
    /// is returned by [`Journal::take_closed`] and goes into the line when it is passed to
    /// [`Journal::append_decided`]. Requires [`Commit::ByCaller`].
    pub fn begin_proposed_reign(&self, shard: ShardId, term: u64) -> Reign {
        self.assert_by_caller();
        self.begin_reign_in(BlockOrder::Proposed, shard, term)
    }

    /// Returns the next block to propose; `None` if there is none. A block that is refused is to be
    /// proposed again until it is appended or the reign ends.
    pub fn take_closed(&self, shard: ShardId) -> Option<DecidedBlock> {
        self.shard(shard).state.lock().take_closed()
    }

    /// Pauses the current reign: appends are refused with [`AppendError::Full`](crate::AppendError)
    /// until [`Journal::resume`] or the end of the reign. When [`Journal::has_no_untaken`] is true,
    /// the consensus can add blocks of its own.
    pub fn pause(&self, shard: ShardId) {
        self.assert_by_caller();
        self.shard(shard).state.lock().pause();
    }

    /// Ends a pause.
    pub fn resume(&self, shard: ShardId) {
        let target = self.shard(shard);
        target.state.lock().resume();
        target.wake_paused();
    }

    /// Wakes `waker` at the end of a pause. Returns false, and does not store the waker, if the shard is not
    /// paused.
    pub fn notify_resumed(&self, shard: ShardId, waker: &Waker) -> bool {
        let target = self.shard(shard);
        let state = target.state.lock();
        if state.is_paused() {
            target.notify_resumed(waker);
        }
        state.is_paused()
    }

    /// Returns true if no block of a shard is proposed or under construction.
    pub fn has_no_untaken(&self, shard: ShardId) -> bool {
        self.shard(shard).state.lock().has_no_untaken()
    }

    /// Returns the shards, as bits, that may have got a block to propose since the last call, and
    /// wakes `waker` once when a shard gets one next. Only one task may call it.
    pub fn proposed_shards(&self, waker: &Waker) -> u64 {
        self.shared().proposals.take_marked(waker)
    }

    /// Appends a block that is decided: the next of the current reign's proposed blocks, or a block
    /// of another leader, whose term is higher than that of the current reign and ends it. The block
    /// can be read at once. No limit on queued or uncommitted bytes applies. The body stays in memory
    /// for readers, so it should not be a small part of a large buffer. Requires
    /// [`Commit::ByCaller`].
    pub fn append_decided(&self, shard: ShardId, block: &DecidedBlock) -> Result<(), DecidedError> {
        self.assert_by_caller();
        if self.shared().health.is_failed() {
            return Err(DecidedError::Failed);
        }
        let target = self.shard(shard);
        let mut state = target.state.lock();
        let origin = state.check_decided(block, self.shared().limits.decided)?;
        let ends_reign = matches!(origin, Origin::Leader { .. }) && state.reign().is_some();
        if ends_reign {
            self.end_reign_of(target, &mut state);
        }
        match origin {
            Origin::Reign => state.take_proposed(),
            Origin::Consensus { count } | Origin::Leader { count } => {
                let queued_bytes = &self.shared().queued_bytes;
                queued_bytes.fetch_add(block.body.len() as u64, Ordering::Relaxed);
                state.push_decided(block, count);
            }
        }
        drop(state);
        if ends_reign {
            target.wake_decided();
        }
        self.shared().doorbell.ring(shard);
        Ok(())
    }

    /// Wakes `waker` once when the block with this index, of any leader, is on disk, has failed, or is
    /// cut. Returns the state now; unless that is pending, the waker is not stored. The state does
    /// not tell a cut block from one that will be appended: do not wait for it again.
    pub fn notify_written(&self, shard: ShardId, index: Index, waker: &Waker) -> Status {
        let publication = &self.shard(shard).publication;
        publication.notify_block(index, Stage::Written, waker)
    }

    /// Reads the blocks with these indexes that were handed over: as many as have `bytes_max` bytes,
    /// but at least one. The result is empty only if the range is, or begins after the last block.
    pub fn read_blocks(
        &self,
        shard: ShardId,
        indexes: Range<Index>,
        bytes_max: usize,
    ) -> Result<Vec<DecidedBlock>, ReadBlocksError> {
        let target = self.shard(shard);
        let planned = plan(&target.state.lock(), indexes, bytes_max)?;
        let mut blocks = Vec::with_capacity(planned.len());
        for one in planned {
            blocks.push(match one {
                PlannedBlock::InMemory(block) => block,
                PlannedBlock::OnDisk(index, location) => match self.read_one(index, location)? {
                    Some(block) => block,
                    None => {
                        check_purged(&target.state.lock(), index)?;
                        let position = location.position;
                        return Err(ReadBlocksError::Damaged { index, position });
                    }
                },
            });
        }
        Ok(blocks)
    }

    /// Reads a block from its segment; `None` if it is not there.
    fn read_one(
        &self,
        index: Index,
        location: BlockLocation,
    ) -> std::io::Result<Option<DecidedBlock>> {
        let read = read_whole_block(self.shared(), location)?;
        let read = read.filter(|(header, _)| header.kind.is_entry() && header.index == index);
        Ok(read.map(|(header, body)| DecidedBlock {
            kind: header.kind,
            term: header.term,
            index,
            time_ms: header.time_ms,
            body,
        }))
    }

    /// Returns the term of a block that was handed over; `None` if there is no such block, or a
    /// later one is filed.
    pub fn term_of(&self, shard: ShardId, index: Index) -> Option<u64> {
        let state = self.shard(shard).state.lock();
        match index <= state.last_taken() {
            true => state.terms().at(index),
            false => None,
        }
    }

    /// Returns the last filed block of a shard, followed by the first block of each run of unfiled
    /// blocks whose term differs from that of the block before it.
    pub fn terms(&self, shard: ShardId) -> Vec<ShardEnd> {
        let state = self.shard(shard).state.lock();
        let terms = state.terms();
        std::iter::once(terms.filed()).chain(terms.runs()).collect()
    }

    /// Returns a shard's last block that was handed over, on disk or not: without blocks of the
    /// current reign that consensus has not taken.
    pub fn last_taken(&self, shard: ShardId) -> ShardEnd {
        let state = self.shard(shard).state.lock();
        let index = state.last_taken();
        let term = state.terms().at(index).unwrap_or_default();
        ShardEnd { index, term }
    }

    /// Returns a shard's last filed block: it and the blocks before it cannot be read by index.
    pub fn last_filed(&self, shard: ShardId) -> ShardEnd {
        self.shard(shard).state.lock().terms().filed()
    }

    /// Allows the filing to let go of a shard's blocks up to `index`. See
    /// [`Options::hold_size`](crate::Options::hold_size).
    pub fn purge(&self, shard: ShardId, index: Index) {
        self.shard(shard).state.lock().purge(index);
        self.shared().filing_bell.signal();
    }

    /// Returns the last block of each shard before the end of each sealed segment, from the oldest
    /// segment on. When the blocks of a segment are purged, exactly they are filed.
    pub fn sealed_ends(&self) -> Vec<Vec<Index>> {
        let segments = self.shared().segments.lock();
        let successors = segments.open.iter().skip(1);
        let ends: Vec<_> = successors.map(|it| it.header.previous_end).collect();
        drop(segments);
        let last_before = |end: Position| -> Vec<Index> {
            let shards = self.shared().shards.iter();
            let last = |shard: &Shard| shard.state.lock().tail.last_before(end);
            shards.map(last).collect()
        };
        ends.into_iter().map(last_before).collect()
    }

    /// Returns the bytes of a shard's blocks that are not committed, on disk or not. Appends are
    /// refused above [`Options::uncommitted_bytes_max`](crate::Options::uncommitted_bytes_max).
    pub fn uncommitted_bytes(&self, shard: ShardId) -> u64 {
        self.shard(shard).state.lock().uncommitted_bytes()
    }

    /// Returns the bytes of a shard's blocks after `first` up to `last`, without those that are filed
    /// or not on disk.
    pub fn unfiled_bytes(&self, shard: ShardId, first: Index, last: Index) -> u64 {
        self.shard(shard).state.lock().tail.bytes(first, last)
    }

    /// Returns the shards with blocks in the oldest sealed segment that are neither committed nor
    /// cut. The segment is not filed before they are, nor is any later one: as soon as four sealed
    /// segments wait and no free one is left, no block of any shard is written.
    pub fn stalled_shards(&self) -> Vec<StalledShard> {
        let segments = self.shared().segments.lock();
        let successor = segments.open.get(1);
        let sealed_end = successor.map(|successor| successor.header.previous_end);
        let durable = segments.durable;
        drop(segments);
        let Some(sealed_end) = sealed_end else {
            return Vec::new();
        };
        let stalled = self.shared().shards.iter().filter_map(|shard| {
            let state = shard.state.lock();
            if state.is_settled_before(sealed_end) {
                return None;
            }
            let first = state.first_unsettled(sealed_end);
            Some(StalledShard {
                shard: shard.id,
                held_bytes: durable.0.saturating_sub(first.0),
            })
        });
        stalled.collect()
    }

    fn assert_by_caller(&self) {
        let commit = self.shared().commit;
        assert_eq!(commit, Commit::ByCaller, "requires `Commit::ByCaller`");
    }
}

/// Chooses the blocks to read.
fn plan(
    state: &State,
    indexes: Range<Index>,
    bytes_max: usize,
) -> Result<Vec<PlannedBlock>, ReadBlocksError> {
    let end = indexes.end.0.min(state.last_readable().0 + 1);
    let mut planned = Vec::new();
    let mut bytes = 0;
    for index in (indexes.start.0..end).map(Index) {
        check_purged(state, index)?;
        let (size, block) = planned_block(state, index)?;
        bytes += size;
        if bytes > bytes_max && !planned.is_empty() {
            break;
        }
        planned.push(block);
    }
    Ok(planned)
}

/// Locates a block that is not filed. Returns its size too.
fn planned_block(state: &State, index: Index) -> Result<(usize, PlannedBlock), ReadBlocksError> {
    if let Some(block) = state.taken(index) {
        return Ok((block.body.len(), PlannedBlock::InMemory(block.clone())));
    }
    let lost = |position| ReadBlocksError::Damaged { index, position };
    let location = state.tail.location(index);
    let location = location.ok_or(lost(Position::default()))?;
    if !location.kind.is_entry() {
        return Err(lost(location.position));
    }
    let in_memory = |body: Bytes| DecidedBlock {
        kind: location.kind,
        term: state.terms().at(index).unwrap_or_default(),
        index,
        time_ms: location.time_ms,
        body,
    };
    let block = match state.tail.body(index) {
        Some(body) => PlannedBlock::InMemory(in_memory(body)),
        None => PlannedBlock::OnDisk(index, location),
    };
    Ok((location.length as usize, block))
}

fn check_purged(state: &State, index: Index) -> Result<(), ReadBlocksError> {
    if index >= state.tail.first() {
        return Ok(());
    }
    let last = state.terms().filed();
    Err(ReadBlocksError::Purged { last })
}

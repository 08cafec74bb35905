//! The line: writes the blocks of all shards to disk in one order.
//!
//! One step takes all blocks that have been built, writes them back to back, syncs once, and
//! publishes per shard how far it is durable. Blocks that are built meanwhile share the next sync.
//! There is no cap on their size and no delay to wait for more; the line's thread only gives way to
//! threads that are ready to run when many append. The first failed or short write, or the first
//! failed sync, latches the journal: nothing is ever written after a hole, and no sync is retried.
//!
//! In bulk, a [`Syncer`] does the sync, and the line meanwhile writes the blocks that are built. Only syncs
//! wait for each other: blocks are published when a sync has ended that began after they were written.
//!
//! The line owns the active segment and knows no threads: a simulation calls [`Line::step`] itself.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::block::{BLOCK_HEADER_SIZE, BlockHeader, BlockKind, aligned};
use crate::buffer::WriteBuffer;
use crate::buffers;
use crate::disk::spares::Spare;
use crate::filing::SummaryBuilder;
use crate::followers::WakeScope;
use crate::publication::Progress;
use crate::segment::{self, Segment, SegmentHeader, ShardEnd};
use crate::shard::{BlockBytes, BuiltBlock, WrittenBlock};
use crate::shared::{Counters, Shared};
use crate::sync::Ordering;
use crate::syncer::Syncer;
use crate::tail::BlockLocation;
use crate::votes::{LastVote, Vote};
use crate::{Index, Position, ShardId};

/// Room for a hint after every block. Without a hint, damage to the last block would look like a
/// torn write.
const HINT_SIZE: u64 = BLOCK_HEADER_SIZE as u64;

/// Time between two looks for built blocks during a sync. Each block that is built would otherwise wake the
/// line.
const WRITE_AHEAD_DELAY: Duration = Duration::from_micros(400);

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStep {
    /// Something was written; there may be more to do.
    Worked,
    /// Nothing is queued.
    Idle,
    /// Blocks are queued, but there is no segment for them until the filing has prepared one.
    Starved,
    /// The journal has failed; nothing will be written any more.
    Failed,
}

/// The writer of the line.
#[derive(Debug)]
pub struct Line {
    shared: Arc<Shared>,
    epochs: Epochs,
    queue: VecDeque<BuiltBlock>,
    buffer: WriteBuffer,
    active: Segment,
    /// Summary of the active segment.
    summary: SummaryBuilder,
    /// Position after the last block that was handed to the disk.
    end: Position,
    /// Position up to which everything is on disk.
    durable: Position,
    /// True if the disk holds no hint yet that the last blocks are durable.
    owes_hint: bool,
    /// Number of syncs of the active segment.
    segment_syncs: u64,
    /// Last block of each shard in the line.
    shard_ends: Vec<ShardEnd>,
    /// Last vote of each shard in the line.
    votes: Vec<LastVote>,
    /// Blocks that are written and not published, in this step or during the last sync.
    written: Vec<(ShardId, WrittenBlock)>,
    /// Does long syncs; without it, none overlaps with writes.
    syncer: Option<Box<dyn Syncer>>,
    /// Shards published in this step.
    advanced: Vec<(ShardId, Progress)>,
    /// Shards whose votes this step made durable, with the number of their votes on disk.
    voted: Vec<(ShardId, u64)>,
    /// Blocks that this step committed, for shards that have followers.
    touched: Vec<(ShardId, WakeScope)>,
    /// Bodies in memory, oldest first, each with its size in memory.
    cached: VecDeque<(ShardId, Index, usize)>,
    cached_bytes: usize,
}

impl Line {
    /// Continues in a segment that holds no block.
    pub(crate) fn new(shared: Arc<Shared>, epochs: Epochs, active: Segment) -> Line {
        let end = active.header.first();
        let shard_ends = active.header.shards.clone();
        let votes = active.header.votes.clone();
        let mut line = Line {
            summary: SummaryBuilder::new(shared.limits.piece_size_min),
            shared,
            epochs,
            queue: VecDeque::new(),
            buffer: WriteBuffer::new(),
            active,
            end,
            durable: end,
            owes_hint: false,
            segment_syncs: 0,
            shard_ends,
            votes,
            written: Vec::new(),
            syncer: None,
            advanced: Vec::new(),
            voted: Vec::new(),
            touched: Vec::new(),
            cached: VecDeque::new(),
            cached_bytes: 0,
        };
        line.buffer.start_at(segment::SEGMENT_HEADER_SIZE);
        line
    }

    /// Writes, syncs and publishes the blocks that were built since the last step. If there are
    /// none, writes the hint if it is owed.
    pub fn step(&mut self) -> LineStep {
        if self.shared.health.is_failed() {
            return LineStep::Failed;
        }
        self.gather();
        self.work().unwrap_or_else(|error| self.latch(&error))
    }

    /// Returns true if the next step without blocks would write a hint.
    pub fn owes_hint(&self) -> bool {
        self.owes_hint && self.queue.is_empty() && self.written.is_empty()
    }

    /// Lets long syncs overlap with the writing of the next blocks.
    pub(crate) fn set_syncer(&mut self, syncer: impl Syncer + 'static) {
        self.syncer = Some(Box::new(syncer));
    }

    /// Lets long syncs overlap with the writing of the next blocks. `choose` returns a number below its
    /// argument; it decides which blocks are written during a sync, and when that takes effect.
    #[cfg(any(test, feature = "simulation"))]
    pub fn overlap_syncs(&mut self, choose: impl FnMut(usize) -> usize + Send + 'static) {
        self.set_syncer(crate::syncer::SimulatedSyncer::new(choose));
    }

    /// Frees the memory of blocks that are on disk.
    pub fn forget_tail(&mut self) {
        self.limit_cache(0);
        self.cached.shrink_to_fit();
        for shard in &self.shared.shards {
            shard.state.lock().rest();
        }
    }

    fn gather(&mut self) {
        let mut rung = self.shared.doorbell.take_marked();
        while rung != 0 {
            let shard = rung.trailing_zeros() as usize;
            rung &= rung - 1;
            let mut state = self.shared.shards[shard].state.lock();
            state.take_built(&mut self.queue);
        }
    }

    fn write_queue(&mut self) -> io::Result<LineStep> {
        let batch_max = self.syncer.as_mut().map_or(usize::MAX, |it| it.batch_max());
        while let Some(built) = self.queue.front()
            && self.written.len() < batch_max
        {
            let size = aligned(built.bytes.size() as u64);
            if !self.has_room(size) {
                match self.roll()? {
                    LineStep::Starved => break,
                    _ => continue,
                }
            }
            if let Some(built) = self.queue.pop_front() {
                self.write(built)?;
            }
        }
        if self.written.is_empty() {
            // A segment may be a long time coming, so write the hint now.
            return match self.owes_hint {
                true => self.write_hint(),
                false => Ok(LineStep::Starved),
            };
        }
        if self.end.0 - self.durable.0 >= self.shared.limits.bulk_sync
            && let Some(mut syncer) = self.syncer.take()
        {
            let synced = self.write_during_sync(&mut *syncer);
            self.syncer = Some(syncer);
            return synced.map(|()| LineStep::Worked);
        }
        self.sync_active()?;
        self.publish();
        Ok(LineStep::Worked)
    }

    /// Publishes the written blocks after a sync, during which it writes the next ones to the same
    /// segment.
    fn write_during_sync(&mut self, syncer: &mut dyn Syncer) -> io::Result<()> {
        let file = self.active.file.clone();
        self.buffer.flush(&*file)?;
        let (batch, end) = (std::mem::take(&mut self.written), self.end);
        self.buffer.hold();
        syncer.begin(file.clone());
        let mut delay = WRITE_AHEAD_DELAY;
        let synced = loop {
            if let Some(synced) = syncer.wait(delay) {
                break synced;
            }
            delay = match self.write_ahead()? {
                true => Duration::ZERO,
                false => WRITE_AHEAD_DELAY,
            };
        };
        synced?;
        self.buffer.release(&*file)?;
        self.note_sync(end);
        let ahead = std::mem::replace(&mut self.written, batch);
        self.publish();
        self.written = ahead;
        Ok(())
    }

    /// Writes the next block, if the active segment has room for it. Returns false if nothing can be
    /// written now.
    fn write_ahead(&mut self) -> io::Result<bool> {
        if self.queue.is_empty() {
            self.gather();
        }
        let size = |built: &BuiltBlock| aligned(built.bytes.size() as u64);
        let has_room = self.queue.front().is_some_and(|it| self.has_room(size(it)));
        if has_room && let Some(built) = self.queue.pop_front() {
            self.write(built)?;
            return Ok(true);
        }
        self.buffer.flush(&*self.active.file)?;
        Ok(false)
    }

    /// Returns true if the active segment has room for a block of this size.
    fn has_room(&self, size: u64) -> bool {
        self.end.0 + size + HINT_SIZE <= self.active.header.limit().0
    }

    fn work(&mut self) -> io::Result<LineStep> {
        // Seal first, so that a line that is never idle seals too.
        let has_rolled = self.is_to_seal() && self.roll()? == LineStep::Worked;
        if !self.queue.is_empty() || !self.written.is_empty() {
            self.write_queue()
        } else if has_rolled {
            Ok(LineStep::Worked)
        } else if self.owes_hint {
            self.write_hint()
        } else {
            Ok(LineStep::Idle)
        }
    }

    fn write(&mut self, built: BuiltBlock) -> io::Result<()> {
        let header = BlockHeader {
            kind: built.kind,
            shard: built.shard,
            length: built.bytes.size() as u32,
            position: self.end,
            epoch: self.active.header.epoch,
            hint: self.durable,
            count: built.count,
            term: built.term,
            index: built.index,
            time_ms: built.time_ms,
        };
        let (room, body) = self.put_bytes(&header, built.bytes)?;
        self.note(&header, &body);
        Counters::add(&self.shared.counters.records, u64::from(built.count));
        let written = WrittenBlock {
            kind: built.kind,
            index: built.index,
            location: BlockLocation {
                position: header.position,
                length: header.length,
                kind: header.kind,
                time_ms: header.time_ms,
            },
            room,
            body,
        };
        self.written.push((built.shard, written));
        Ok(())
    }

    /// Adds a built block to the write buffer. Returns the bytes of memory that its body occupies,
    /// and the body.
    fn put_bytes(&mut self, header: &BlockHeader, bytes: BlockBytes) -> io::Result<(usize, Bytes)> {
        match bytes {
            BlockBytes::Owned(mut bytes) => {
                let front = self.seal(header, &bytes[BLOCK_HEADER_SIZE..]);
                bytes[..BLOCK_HEADER_SIZE].copy_from_slice(&front);
                self.put_sealed(header, [&bytes[..]])?;
                buffers::free_rest(&mut bytes);
                let room = bytes.capacity();
                Ok((room, Bytes::from(bytes).slice(BLOCK_HEADER_SIZE..)))
            }
            BlockBytes::Shared(body) => {
                let front = self.seal(header, &body);
                self.put_sealed(header, [&front[..], &body[..]])?;
                Ok((body.len(), body))
            }
        }
    }

    /// Adds a block to the summary of the segment. Returns its header with the CRC, for which the body is
    /// read once.
    fn seal(&mut self, header: &BlockHeader, body: &[u8]) -> [u8; BLOCK_HEADER_SIZE] {
        let seed = self.active.header.seed();
        let checksum = self.summary.add(header, self.active.header.base, body);
        match checksum {
            Some(checksum) => header.sealed_over(body.len() as u32, checksum, seed),
            None => header.sealed(body, seed),
        }
    }

    /// Updates what the next segment's header says about a shard.
    fn note(&mut self, header: &BlockHeader, body: &[u8]) {
        let shard = usize::from(header.shard.0);
        let end = &mut self.shard_ends[shard];
        match header.kind {
            BlockKind::Vote => {
                self.votes[shard] =
                    Vote::new(header.term, body).map_or(LastVote::Lost, LastVote::Known);
            }
            BlockKind::Cut => {
                (end.index, end.term) = (Index(header.index.0 - 1), header.term);
                let (shard, position) = (header.shard, header.position);
                self.shared.note_cut(shard, header.index, position);
            }
            _ => (end.index, end.term) = (header.index, header.term),
        }
    }

    fn write_hint(&mut self) -> io::Result<LineStep> {
        self.owes_hint = false;
        let header = BlockHeader {
            kind: BlockKind::Idle,
            shard: ShardId(0),
            length: BLOCK_HEADER_SIZE as u32,
            position: self.end,
            epoch: self.active.header.epoch,
            hint: self.durable,
            count: 0,
            term: 0,
            index: Index(0),
            time_ms: 0,
        };
        assert!(
            header.end() <= self.active.header.limit(),
            "there is room for a hint"
        );
        let block = header.sealed(&[], self.active.header.seed());
        self.put_sealed(&header, [&block])?;
        self.buffer.flush(&*self.active.file)?;
        Ok(LineStep::Worked)
    }

    /// Adds a sealed block, in pieces, to the write buffer.
    fn put_sealed<const N: usize>(
        &mut self,
        header: &BlockHeader,
        pieces: [&[u8]; N],
    ) -> io::Result<()> {
        let file = &*self.active.file;
        for piece in pieces {
            self.buffer.push(file, piece)?;
        }
        let size = header.end().0 - header.position.0;
        let gap = size - u64::from(header.length);
        self.buffer.push(file, &[0; 8][..gap as usize])?;
        self.end = header.end();
        Counters::add(&self.shared.counters.blocks, 1);
        Counters::add(&self.shared.counters.bytes, size);
        Ok(())
    }

    /// Writes the buffer and syncs. Everything written so far is on disk when it returns.
    fn sync_active(&mut self) -> io::Result<()> {
        self.buffer.flush(&*self.active.file)?;
        self.active.file.sync_data()?;
        self.note_sync(self.end);
        Ok(())
    }

    /// Notes that the active segment is on disk up to a position.
    fn note_sync(&mut self, end: Position) {
        Counters::add(&self.shared.counters.syncs, 1);
        self.segment_syncs += 1;
        self.durable = end;
        self.owes_hint = true;
    }

    /// Returns true if sealing of the active segment was requested. A segment without blocks is
    /// sealed too: its file may hold older bytes that have to leave the disk.
    fn is_to_seal(&self) -> bool {
        self.shared.seal_wanted.load(Ordering::SeqCst)
    }

    /// Continues in the next segment, if one is prepared.
    fn roll(&mut self) -> io::Result<LineStep> {
        let Some(spare) = self.take_spare() else {
            return Ok(LineStep::Starved);
        };
        self.shared.seal_wanted.store(false, Ordering::SeqCst);
        self.finish_segment()?;
        self.note_sync_size();
        let header = SegmentHeader {
            journal_id: self.shared.journal_id,
            sequence: self.active.header.sequence + 1,
            base: self.active.header.limit(),
            size: self.active.header.size,
            epoch: self.epochs.for_segment(self.active.header.sequence + 1),
            previous_end: self.end,
            shards: self.shard_ends.clone(),
            votes: self.votes.clone(),
        };
        let summary = SummaryBuilder::new(self.shared.limits.piece_size_min);
        let summary = std::mem::replace(&mut self.summary, summary).finish();
        let sealed = self.active.header.sequence;
        self.active = segment::begin(&*self.shared.disk, spare.file, &spare.path, header)?;
        self.end = self.active.header.first();
        self.durable = self.end;
        self.owes_hint = false;
        self.buffer.start_at(segment::SEGMENT_HEADER_SIZE);
        let mut segments = self.shared.segments.lock();
        segments.open.push_back(self.active.clone());
        if let Some(summary) = summary {
            segments.summaries.insert(sealed, Arc::new(summary));
        }
        if self.written.is_empty() {
            segments.durable = self.durable;
        }
        drop(segments);
        self.shared.filing_bell.signal();
        Ok(LineStep::Worked)
    }

    /// Notes whether the syncs of the full segment covered so many bytes that the next files are only
    /// allocated.
    fn note_sync_size(&mut self) {
        let bytes = self.end.0 - self.active.header.first().0;
        let syncs = std::mem::take(&mut self.segment_syncs).max(1);
        let is_in_bulk = bytes / syncs >= self.shared.limits.bulk_sync;
        self.shared.is_in_bulk.store(is_in_bulk, Ordering::Relaxed);
    }

    /// Takes a file for the next segment. If there is none, the filing wakes the line when there
    /// is.
    fn take_spare(&self) -> Option<Spare> {
        self.shared.is_starved.store(true, Ordering::SeqCst);
        let spare = self.shared.spares.take();
        match spare {
            Some(_) => self.shared.is_starved.store(false, Ordering::SeqCst),
            None => self.shared.filing_bell.signal(),
        }
        spare
    }

    /// Makes the segment durable. The header of the next segment will claim that it is whole.
    fn finish_segment(&mut self) -> io::Result<()> {
        self.sync_active()
    }

    /// Publishes, shard by shard, which blocks are on disk, and wakes their waiters.
    fn publish(&mut self) {
        let mut freed = 0;
        let mut written = std::mem::take(&mut self.written);
        let mut blocks = written.drain(..).peekable();
        while let Some((id, mut block)) = blocks.next() {
            let shard = self.shared.shard(id);
            let mut state = shard.state.lock();
            let (before, votes_before) = (state.committed(), state.votes.written());
            loop {
                freed += block.body.len() as u64;
                self.cached_bytes += block.room;
                self.cached.push_back((id, block.index, block.room));
                state.place(block);
                match blocks.next_if(|(next, _)| *next == id) {
                    Some((_, next)) => block = next,
                    None => break,
                }
            }
            state.commit_known(|trim| self.shared.note_trim(id, trim));
            match shard.touched_after(&state, before) {
                WakeScope::Empty => {}
                touched => self.touched.push((id, touched)),
            }
            self.advanced.push((id, shard.advance(&state)));
            if state.votes.written() > votes_before {
                self.voted.push((id, state.votes.written()));
            }
        }
        drop(blocks);
        self.written = written;
        self.shared.segments.lock().durable = self.durable;
        self.shared.queued_bytes.fetch_sub(freed, Ordering::Relaxed);
        self.wake();
        self.limit_cache(self.shared.limits.tail);
    }

    /// Wakes the waiters of blocks that this step wrote or committed. All shards are published
    /// before, so a task that waits for several shards is woken once and finds all of them durable.
    fn wake(&mut self) {
        for (id, progress) in self.advanced.drain(..) {
            self.shared.shard(id).publication.wake(progress);
        }
        for (id, written) in self.voted.drain(..) {
            self.shared.shard(id).vote_waiters.advance(written);
        }
        for (id, touched) in self.touched.drain(..) {
            self.shared.shard(id).followers.wake_scope(touched);
        }
    }

    /// Drops the oldest bodies until at most `limit` bytes are in memory.
    fn limit_cache(&mut self, limit: usize) {
        while self.cached_bytes > limit {
            let Some((shard, index, size)) = self.cached.pop_front() else {
                break;
            };
            self.cached_bytes -= size;
            self.shared.shard(shard).state.lock().forget(index);
        }
    }

    /// Latches the journal. The first failure ends the line.
    fn latch(&mut self, error: &io::Error) -> LineStep {
        let path = segment::path(self.active.header.sequence);
        self.shared
            .fail(format!("the write-ahead log failed at {path}: {error}"));
        self.queue.clear();
        LineStep::Failed
    }
}

/// Epochs of segment files: never the same twice, if the seed is random at every start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epochs {
    seed: u64,
}

impl Epochs {
    pub(crate) fn new(seed: u64) -> Epochs {
        Epochs { seed }
    }

    /// Returns the epoch of the segment with this sequence (the finalizer of splitmix64).
    pub(crate) fn for_segment(&self, sequence: u64) -> u64 {
        let mut mixed = self.seed ^ sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

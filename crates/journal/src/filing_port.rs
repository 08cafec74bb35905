//! The journal's side of [`filing::Line`]: gives sealed segments to the filing and takes the
//! results.

use std::ops::Bound;
use std::sync::Arc;

use crate::extent::ExtentSet;
use crate::filing::{self, Cut, SealedSegment};
use crate::manifest::Manifest;
use crate::segment::Segment;
use crate::shard::Shard;
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::{Index, Position, ShardId, StreamId};

/// Streams per hold of the shard's lock.
const STREAMS_AT_ONCE: usize = 1024;

impl filing::Line for Shared {
    fn sealed(&self) -> Option<SealedSegment> {
        let segments = self.segments.lock();
        let (segment, successor) = (segments.open.front()?, segments.open.get(1)?);
        let mut sealed = SealedSegment {
            segment: segment.clone(),
            end: successor.header.previous_end,
            shards: successor.header.shards.clone(),
            cuts: Vec::new(),
            is_inherited: segment.header.sequence < segments.first_own,
            summary: segments.summaries.get(&segment.header.sequence).cloned(),
        };
        let is_published = sealed.end <= segments.durable;
        let may_be_held = segments.may_hold(segment, self.limits.hold);
        drop(segments);
        let is_purged = |shard: &Shard| shard.state.lock().is_purged_before(sealed.end);
        if may_be_held && !self.shards.iter().all(is_purged) {
            return None;
        }
        let is_settled = |shard: &Shard| shard.state.lock().is_settled_before(sealed.end);
        if !is_published || !self.shards.iter().all(is_settled) {
            return None;
        }
        // Read the cuts only now: all cuts that void blocks of this segment are known by now.
        sealed.cuts.clone_from(&self.segments.lock().cuts);
        Some(sealed)
    }

    fn sealed_count(&self) -> usize {
        let segments = self.segments.lock();
        let sealed = segments.open.len().saturating_sub(1);
        let is_held = |it: &&Segment| segments.may_hold(it, self.limits.hold);
        match self.limits.hold {
            0 => sealed,
            _ => sealed - segments.open.iter().take(sealed).filter(is_held).count(),
        }
    }

    fn active_size(&self) -> u64 {
        let segments = self.segments.lock();
        let begin = segments.open.back().map(|active| active.header.base);
        begin.map_or(0, |begin| segments.durable.0.saturating_sub(begin.0))
    }

    fn is_in_bulk(&self) -> bool {
        self.is_in_bulk.load(Ordering::Relaxed)
    }

    fn start(&self, shard: ShardId, stream: StreamId) -> u64 {
        let Some(shard) = self.shards.get(usize::from(shard.0)) else {
            return 0;
        };
        let state = shard.state.lock();
        state.streams.get(&stream).map_or(0, |stream| stream.start)
    }

    fn trims(&self) -> u64 {
        self.counters.trims.load(Ordering::Relaxed)
    }

    fn seal(&self) -> Position {
        let mut segments = self.segments.lock();
        let end = segments
            .open
            .back()
            .map_or(segments.durable, |last| last.header.limit());
        segments.released = end;
        drop(segments);
        self.seal_wanted.store(true, Ordering::SeqCst);
        self.doorbell.signal();
        end
    }

    fn publish(&self, extents: &Arc<ExtentSet>, manifest: &Manifest) {
        for (shard, filed) in self.shards.iter().zip(&manifest.shards) {
            let mut state = shard.state.lock();
            state.extents = extents.clone();
            let is_news = state.file(filed.index);
            drop(state);
            if is_news {
                drop_runs(shard, filed.index);
            }
        }
        let mut segments = self.segments.lock();
        while segments.open.len() > 1 && segments.open[0].header.sequence <= manifest.sequence {
            segments.open.pop_front();
        }
        let filed = manifest.sequence;
        segments.summaries.retain(|sequence, _| *sequence > filed);
        segments.cuts.retain(|cut| cut.position >= manifest.filed);
    }

    fn set_disk_full(&self, is_full: bool) {
        self.health.set_disk_full(is_full);
    }
}

/// Drops the runs of filed blocks. Readers use the extents already; this only frees memory, without
/// blocking writers for long.
fn drop_runs(shard: &Shard, filed: Index) {
    let mut from = Bound::Unbounded;
    loop {
        let mut state = shard.state.lock();
        let mut last = None;
        let entries = state.streams.range_mut((from, Bound::Unbounded));
        for (stream, entry) in entries.take(STREAMS_AT_ONCE) {
            entry.file(filed);
            last = Some(*stream);
        }
        match last {
            Some(last) => from = Bound::Excluded(last),
            None => return,
        }
    }
}

impl Shared {
    /// Records that a cut was written to the line.
    pub(crate) fn note_cut(&self, shard: ShardId, index: Index, position: Position) {
        self.segments.lock().cuts.push(Cut {
            shard,
            index,
            position,
        });
    }
}

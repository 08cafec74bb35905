//! State shared by the journal handle, the line, the filing and all guards.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::cache_line::CacheLine;
use crate::disk::Disk;
use crate::disk::spares::Spares;
use crate::doorbell::Doorbell;
use crate::filing::{Cut, Erasures, SegmentSummary, Totals};
use crate::health::HealthCell;
use crate::options::{Commit, Limits};
use crate::proposals::Proposals;
use crate::record::RecordKind;
use crate::segment::Segment;
use crate::shard::{Shard, Trim};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::{Position, ShardId};

/// State shared by the journal handle, the line, the filing and all guards. What appends or the line
/// write is apart from what all of them read.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) journal_id: u64,
    pub(crate) commit: Commit,
    pub(crate) limits: Limits,
    pub(crate) shards: Box<[Shard]>,
    pub(crate) health: HealthCell,
    pub(crate) doorbell: CacheLine<Doorbell>,
    /// Rung when a shard has a block to propose.
    pub(crate) proposals: CacheLine<Proposals>,
    pub(crate) segments: CacheLine<Mutex<Segments>>,
    pub(crate) spares: Arc<Spares>,
    pub(crate) erasures: Arc<Erasures>,
    /// Rung when there may be work for the filing.
    pub(crate) filing_bell: CacheLine<Doorbell>,
    /// True while the line waits for a spare segment.
    pub(crate) is_starved: AtomicBool,
    /// Bytes in blocks that are not on disk yet.
    pub(crate) queued_bytes: CacheLine<AtomicU64>,
    /// Asks the line to seal the active segment soon.
    pub(crate) seal_wanted: AtomicBool,
    /// The syncs of the last full segment covered many bytes each.
    pub(crate) is_in_bulk: AtomicBool,
    /// Asks the threads to end once nothing is queued.
    pub(crate) is_closing: AtomicBool,
    /// True once the line's thread has ended.
    pub(crate) is_line_closed: AtomicBool,
    pub(crate) counters: CacheLine<Counters>,
}

/// Counters since the journal was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) syncs: AtomicU64,
    pub(crate) blocks: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) trims: AtomicU64,
    pub(crate) filing: Mutex<FilingCounts>,
}

/// Counters that the filing thread publishes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FilingCounts {
    pub(crate) totals: Totals,
    pub(crate) dead_bytes: u64,
}

/// The segments that are not filed, ascending; the last is the active one.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pub(crate) open: VecDeque<Segment>,
    /// End of the durable and published part of the line.
    pub(crate) durable: Position,
    /// Sequence of the first segment that this run began. Earlier files may have held bytes that
    /// this run knows nothing about.
    pub(crate) first_own: u64,
    /// Summaries of sealed segments, by their sequences.
    pub(crate) summaries: BTreeMap<u64, Arc<SegmentSummary>>,
    /// Cuts in the unfiled part of the line.
    pub(crate) cuts: Vec<Cut>,
    /// Nothing before this position is held for peers: an erase or a backup waits until it is filed.
    pub(crate) released: Position,
}

impl Segments {
    /// Returns the bytes of the line that are durable and not filed.
    pub(crate) fn size(&self) -> u64 {
        let ends = self.open.iter().skip(1);
        let ends = ends.map(|successor| successor.header.previous_end);
        let size_of =
            |(segment, end): (&Segment, Position)| end.0.saturating_sub(segment.header.first().0);
        self.open
            .iter()
            .zip(ends.chain([self.durable]))
            .map(size_of)
            .sum()
    }

    /// Returns true if a sealed segment is within the last `hold` bytes of the line, and so is held
    /// for peers until its blocks are purged.
    pub(crate) fn may_hold(&self, segment: &Segment, hold: u64) -> bool {
        let begin = segment.header.base;
        begin >= self.released && self.durable.0.saturating_sub(begin.0) <= hold
    }

    /// Returns the segment that contains a position.
    pub(crate) fn find(&self, position: Position) -> Option<&Segment> {
        let behind = self
            .open
            .partition_point(|segment| segment.header.base <= position);
        let segment = self.open.get(behind.checked_sub(1)?)?;
        (position < segment.header.limit()).then_some(segment)
    }
}

impl Shared {
    /// Returns a shard. Panics if there is no such shard.
    pub(crate) fn shard(&self, shard: ShardId) -> &Shard {
        &self.shards[usize::from(shard.0)]
    }

    /// Records that a trim was committed, and wakes the filing.
    pub(crate) fn note_trim(&self, shard: ShardId, trim: &Trim) {
        Counters::add(&self.counters.trims, 1);
        if trim.kind == RecordKind::Erase {
            let Trim {
                stream,
                start,
                time_ms,
                ..
            } = *trim;
            self.erasures.note(shard, stream, start, time_ms);
        }
        self.filing_bell.signal();
    }

    /// Wakes the line if it waits for a spare and one is ready.
    pub(crate) fn wake_starved_line(&self) {
        let has_spare = self.spares.ready() > 0;
        if has_spare && self.is_starved.swap(false, Ordering::SeqCst) {
            self.doorbell.signal();
        }
    }

    /// Latches a failure: nothing is written any more, and all waiting tickets end as failed.
    pub(crate) fn fail(&self, reason: String) {
        self.health.fail(reason);
        for shard in &self.shards {
            shard.publication.fail();
            shard.vote_waiters.fail();
            shard.followers.wake_all();
        }
        self.doorbell.signal();
        self.filing_bell.signal();
    }
}

impl Counters {
    /// Adds to a counter.
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

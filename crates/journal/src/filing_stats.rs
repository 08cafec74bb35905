//! Statistics of filing, for metrics.

use crate::filing::Line as _;
use crate::shared::FilingCounts;
use crate::{Journal, ShardId};

/// Statistics of filing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilingStats {
    /// Number of extents.
    pub extents: usize,
    /// Files that are open for the extents: those of extents with records of their own, and the
    /// segments to which the others refer.
    pub open_files: usize,
    /// Full segments whose records were not copied into extents.
    pub retained_segments: usize,
    /// Bytes of all extents, and of the records to which they refer.
    pub extent_bytes: u64,
    /// Bytes of records in extents that are below the start of their stream, as far as counted.
    pub dead_bytes: u64,
    /// Sealed segments that wait for filing.
    pub waiting: usize,
    /// Bytes of the line that are not filed yet: those segments and the active one.
    pub unfiled_bytes: u64,
    /// Segments filed since the journal was opened.
    pub filed_segments: u64,
    /// Bytes of the extents that filing wrote.
    pub filed_bytes: u64,
    /// Merges completed since the journal was opened.
    pub merges: u64,
    /// Bytes of the extents that merges wrote.
    pub merged_bytes: u64,
}

impl Journal {
    /// Returns the statistics of filing.
    pub fn filing(&self) -> FilingStats {
        let shared = self.shared();
        // All shards hold the same set of extents.
        let extents = shared.shard(ShardId(0)).state.lock().extents.clone();
        let FilingCounts { totals, dead_bytes } = *shared.counters.filing.lock();
        FilingStats {
            extents: extents.count(),
            open_files: extents.files(),
            retained_segments: extents.segments().len(),
            extent_bytes: extents.size(),
            dead_bytes,
            waiting: shared.sealed_count(),
            unfiled_bytes: shared.segments.lock().size(),
            filed_segments: totals.segments,
            filed_bytes: totals.filed_bytes,
            merges: totals.merges,
            merged_bytes: totals.merged_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::disk::SimulatedDisk;
    use crate::filing::Step;
    use crate::{LineStep, Options, SteppedJournal, StreamId};

    fn with_small_segments() -> SteppedJournal {
        let options = Options {
            journal_id: 1,
            entropy: 1,
            shard_count: 1,
            segment_size: 16 << 10,
            reserve_size: 0,
            ..Options::default()
        };
        let disk = Arc::new(SimulatedDisk::new(1));
        Journal::open_stepped(disk, &options).unwrap()
    }

    fn append(journal: &Journal) {
        let mut guard = journal.lock(ShardId(0), 1);
        guard.append(StreamId(1), None, 0, &[7; 1000]).unwrap();
    }

    #[test]
    fn filed_and_dead_bytes_are_counted() {
        let mut stepped = with_small_segments();
        let mut settle = |now_ms| loop {
            let line = stepped.line.step();
            let worked = stepped.background.step(now_ms) == Step::Worked;
            if !worked && matches!(line, LineStep::Idle | LineStep::Failed) {
                break;
            }
        };
        let journal = &stepped.journal;
        for _ in 0..30 {
            append(journal);
            settle(1);
        }
        let filed = journal.filing();
        assert!(filed.extents > 0 && filed.filed_segments > 0);
        assert!(filed.extent_bytes >= 10_000 && filed.filed_bytes >= 10_000);
        assert_eq!((filed.dead_bytes, filed.waiting), (0, 0));
        assert!(filed.unfiled_bytes < 16 << 10, "{filed:?}");
        let mut guard = journal.lock(ShardId(0), 1);
        guard.trim(StreamId(1), 5).unwrap();
        drop(guard);
        // Counting runs at intervals.
        (1..100).for_each(|minute| settle(minute * 60_000));
        let trimmed = journal.filing();
        assert!(
            trimmed.dead_bytes > 0 || trimmed.extent_bytes < filed.extent_bytes,
            "{trimmed:?}"
        );
    }

    #[test]
    fn unfiled_segments_are_counted_until_they_are_filed() {
        let mut stepped = with_small_segments();
        assert_eq!(stepped.journal.filing().unfiled_bytes, 0);
        for _ in 0..30 {
            append(&stepped.journal);
            while stepped.line.step() == LineStep::Worked {}
            // A spare is made, but nothing is filed.
            stepped.journal.shared().spares.prepare().unwrap();
            while stepped.line.step() == LineStep::Worked {}
        }
        let before = stepped.journal.filing();
        let written = stepped.journal.stats().bytes;
        assert!(
            before.waiting >= 2 && before.unfiled_bytes >= 30_000,
            "{before:?}"
        );
        // There may be gaps between blocks.
        assert!(
            before.unfiled_bytes.abs_diff(written) < 1_000,
            "{before:?} {written}"
        );
        while stepped.background.step(1) == Step::Worked {}
        let after = stepped.journal.filing();
        assert_eq!(after.waiting, 0);
        assert!(after.unfiled_bytes < 16 << 10, "{after:?}");
    }
}

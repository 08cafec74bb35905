//! Memory that segments are read into and sorted in.

use std::mem;

use super::collect::SortMemory;

/// Time after which memory that is not used is freed, in milliseconds.
const FREE_AFTER_MS: u64 = 10_000;

/// Memory that segments are read into and sorted in, one after the other: fresh pages for each would
/// cost as much as the read.
#[derive(Debug, Default)]
pub(super) struct SegmentMemory {
    memory: SortMemory,
    free_ms: u64,
}

impl SegmentMemory {
    /// Takes the memory; it is empty the first time.
    pub(super) fn take(&mut self) -> SortMemory {
        mem::take(&mut self.memory)
    }

    /// Returns the memory for the next segment.
    pub(super) fn give_back(&mut self, memory: SortMemory, now_ms: u64) {
        self.memory = memory;
        self.free_ms = now_ms + FREE_AFTER_MS;
    }

    /// Returns when to call [`SegmentMemory::free_if_due`]; `None` if there is no memory.
    pub(super) fn due_ms(&self) -> Option<u64> {
        (self.memory.size() > 0).then_some(self.free_ms)
    }

    /// Frees the memory if no segment came for some time.
    pub(super) fn free_if_due(&mut self, now_ms: u64) {
        if self.due_ms().is_some_and(|due_ms| due_ms <= now_ms) {
            self.memory = SortMemory::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_and_freed_when_no_segment_comes() {
        let mut memory = SegmentMemory::default();
        assert_eq!((memory.due_ms(), memory.take().size()), (None, 0));
        memory.give_back(SortMemory::with_bytes(100), 1_000);
        memory.free_if_due(10_999);
        let taken = memory.take();
        assert_eq!(taken.size(), 100);
        assert_eq!(memory.due_ms(), None);
        memory.give_back(taken, 5_000);
        assert_eq!(memory.due_ms(), Some(15_000));
        memory.free_if_due(15_000);
        assert_eq!((memory.due_ms(), memory.take().size()), (None, 0));
    }
}

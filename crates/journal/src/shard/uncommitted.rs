//! Sizes of a shard's blocks that are not committed.

use std::collections::VecDeque;

/// Sizes of the closed blocks after the committed one, on disk or not.
#[derive(Debug, Default)]
pub(super) struct Uncommitted {
    sizes: VecDeque<u32>,
    bytes: u64,
}

impl Uncommitted {
    /// Returns the bytes of all these blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds the next block.
    pub(super) fn add(&mut self, size: usize) {
        self.sizes.push_back(size as u32);
        self.bytes += size as u64;
    }

    /// Removes the first `count` blocks, which are committed.
    pub(super) fn commit(&mut self, count: u64) {
        for size in (0..count).map_while(|_| self.sizes.pop_front()) {
            self.bytes -= u64::from(size);
        }
    }

    /// Removes all blocks but the first `count`; they are void.
    pub(super) fn retain(&mut self, count: u64) {
        while self.sizes.len() as u64 > count
            && let Some(size) = self.sizes.pop_back()
        {
            self.bytes -= u64::from(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_blocks_that_are_neither_committed_nor_void() {
        let mut uncommitted = Uncommitted::default();
        for size in [1, 2, 4, 8] {
            uncommitted.add(size);
        }
        uncommitted.commit(1);
        assert_eq!(uncommitted.bytes(), 14);
        uncommitted.retain(2);
        assert_eq!(uncommitted.bytes(), 6);
        uncommitted.retain(5);
        uncommitted.commit(1);
        assert_eq!(uncommitted.bytes(), 4);
        uncommitted.commit(9);
        assert_eq!(uncommitted.bytes(), 0);
    }
}

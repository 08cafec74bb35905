//! Terms of a shard's blocks, as runs of blocks of one term.

use std::collections::VecDeque;

use crate::Index;
use crate::segment::ShardEnd;

/// Terms of all blocks that are not filed, and of the last filed one.
#[derive(Debug)]
pub(crate) struct Terms {
    filed: ShardEnd,
    /// The first block of each run whose term differs from that of the block before it, ascending.
    runs: VecDeque<ShardEnd>,
}

impl Terms {
    /// Creates the terms of a shard whose blocks are all filed.
    pub(crate) fn after(filed: ShardEnd) -> Terms {
        Terms {
            filed,
            runs: VecDeque::new(),
        }
    }

    /// Returns the last filed block.
    pub(crate) fn filed(&self) -> ShardEnd {
        self.filed
    }

    /// Returns the runs of unfiled blocks by their first blocks, without those that continue the
    /// term of the last filed block.
    pub(crate) fn runs(&self) -> impl Iterator<Item = ShardEnd> {
        self.runs.iter().copied()
    }

    /// Returns the term of the last block.
    pub(crate) fn last(&self) -> u64 {
        self.runs.back().map_or(self.filed.term, |run| run.term)
    }

    /// Adds the next block.
    pub(crate) fn push(&mut self, index: Index, term: u64) {
        if term != self.last() {
            self.runs.push_back(ShardEnd { index, term });
        }
    }

    /// Returns the term of a block, which must exist; `None` if a later block is filed.
    pub(crate) fn at(&self, index: Index) -> Option<u64> {
        if index < self.filed.index {
            return None;
        }
        let behind = self.runs.partition_point(|run| run.index <= index);
        let run = behind.checked_sub(1).and_then(|place| self.runs.get(place));
        Some(run.map_or(self.filed.term, |run| run.term))
    }

    /// Drops the blocks from `index` on, which are void.
    pub(crate) fn cut(&mut self, index: Index) {
        let left = self.runs.partition_point(|run| run.index < index);
        self.runs.truncate(left);
    }

    /// Drops the blocks before `index`, which is filed too and remains as the last filed block.
    pub(crate) fn file(&mut self, index: Index) {
        if let Some(term) = self.at(index) {
            self.filed = ShardEnd { index, term };
            let filed = self.runs.partition_point(|run| run.index <= index);
            self.runs.drain(..filed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(index: u64, term: u64) -> ShardEnd {
        ShardEnd {
            index: Index(index),
            term,
        }
    }

    fn example() -> Terms {
        let mut terms = Terms::after(end(3, 1));
        for (index, term) in [(4, 1), (5, 2), (6, 2), (7, 5), (8, 5)] {
            terms.push(Index(index), term);
        }
        terms
    }

    fn at(terms: &Terms) -> Vec<Option<u64>> {
        (2..9).map(|index| terms.at(Index(index))).collect()
    }

    #[test]
    fn blocks_of_one_term_are_one_run() {
        let terms = example();
        assert!(terms.runs().eq([end(5, 2), end(7, 5)]));
        let expected = [None, Some(1), Some(1), Some(2), Some(2), Some(5), Some(5)];
        assert_eq!(at(&terms), expected);
        assert_eq!(terms.last(), 5);
    }

    #[test]
    fn cut_shortens_the_runs() {
        let mut terms = example();
        terms.cut(Index(8));
        assert_eq!(terms.last(), 5);
        terms.cut(Index(6));
        assert_eq!(terms.last(), 2);
        terms.push(Index(6), 4);
        assert!(terms.runs().eq([end(5, 2), end(6, 4)]));
        terms.cut(Index(4));
        assert_eq!((terms.last(), terms.runs().count()), (1, 0));
    }

    #[test]
    fn filed_blocks_leave_the_term_of_the_last_one() {
        let mut terms = example();
        terms.file(Index(6));
        assert_eq!(terms.filed(), end(6, 2));
        assert_eq!(terms.at(Index(5)), None);
        assert!(terms.runs().eq([end(7, 5)]));
        terms.file(Index(6));
        terms.file(Index(8));
        assert_eq!((terms.filed(), terms.last()), (end(8, 5), 5));
        terms.push(Index(9), 5);
        assert_eq!(terms.runs().count(), 0);
        assert_eq!(terms.at(Index(9)), Some(5));
    }
}

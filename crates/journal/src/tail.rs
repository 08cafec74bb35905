//! Durable blocks of a shard that are not filed: all their positions, and the newest bodies.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::block::BlockKind;
use crate::{Index, Position};

/// Position of a durable block in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLocation {
    pub(crate) position: Position,
    /// Bytes of header and body.
    pub(crate) length: u32,
    pub(crate) kind: BlockKind,
    pub(crate) time_ms: u64,
}

/// Unfiled blocks of one shard. Their indexes are dense.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Index of the first block.
    first: u64,
    locations: VecDeque<BlockLocation>,
    /// Bodies of the newest blocks, as many as memory allows.
    bodies: VecDeque<Bytes>,
}

impl Tail {
    /// Creates an empty tail; the next block has index `next`.
    pub(crate) fn starting_at(next: Index) -> Tail {
        Tail {
            first: next.0,
            ..Tail::default()
        }
    }

    /// Returns the index of the first unfiled block; it may not exist yet.
    pub(crate) fn first(&self) -> Index {
        Index(self.first)
    }

    /// Returns the index of the last block.
    pub(crate) fn last(&self) -> Index {
        Index(self.end() - 1)
    }

    /// Adds the next block with its body.
    pub(crate) fn push(&mut self, location: BlockLocation, body: Bytes) {
        self.locations.push_back(location);
        self.bodies.push_back(body);
    }

    /// Adds the next block without its body. Drops the bodies of all blocks before it.
    pub(crate) fn push_unread(&mut self, location: BlockLocation) {
        self.locations.push_back(location);
        self.bodies.clear();
    }

    pub(crate) fn location(&self, index: Index) -> Option<BlockLocation> {
        let place = index.0.checked_sub(self.first)?;
        self.locations.get(place as usize).copied()
    }

    /// Returns the bytes of the blocks after `first` up to `last`.
    pub(crate) fn bytes(&self, first: Index, last: Index) -> u64 {
        let place = |index: Index| {
            let place = (index.0 + 1).saturating_sub(self.first) as usize;
            place.min(self.locations.len())
        };
        let (start, end) = (place(first), place(last));
        let blocks = self.locations.range(start..end.max(start));
        blocks.map(|block| u64::from(block.length)).sum()
    }

    /// Returns the body if it is in memory.
    pub(crate) fn body(&self, index: Index) -> Option<Bytes> {
        let first = self.end() - self.bodies.len() as u64;
        let place = index.0.checked_sub(first)?;
        self.bodies.get(place as usize).cloned()
    }

    /// Drops the bodies of blocks up to `index` and passes each to `visit`.
    pub(crate) fn forget(&mut self, index: Index, mut visit: impl FnMut(Bytes)) {
        while self.end() - self.bodies.len() as u64 <= index.0
            && let Some(body) = self.bodies.pop_front()
        {
            visit(body);
        }
        if self.bodies.is_empty() {
            self.bodies.shrink_to_fit();
        }
    }

    /// Returns the index of the last block before a position; the one before the first if there is
    /// none.
    pub(crate) fn last_before(&self, position: Position) -> Index {
        let before = self
            .locations
            .partition_point(|block| block.position < position);
        Index(self.first + before as u64 - 1)
    }

    /// Drops blocks up to `index`, which are filed. Returns true if there were any.
    pub(crate) fn file(&mut self, index: Index) -> bool {
        let first = self.first;
        self.forget(index, drop);
        while self.first <= index.0 && self.locations.pop_front().is_some() {
            self.first += 1;
        }
        self.locations.shrink_to(self.locations.len() * 2);
        first < self.first
    }

    /// Drops blocks from `index` on, which are void.
    pub(crate) fn cut(&mut self, index: Index) {
        while self.end() > index.0 && self.locations.pop_back().is_some() {
            self.bodies.pop_back();
        }
    }

    fn end(&self) -> u64 {
        self.first + self.locations.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Tail {
        let mut tail = Tail::starting_at(Index(4));
        for index in 4..9u64 {
            let location = BlockLocation {
                position: Position(index * 100),
                length: 80,
                kind: BlockKind::Records,
                time_ms: index,
            };
            tail.push(location, Bytes::from(vec![index as u8]));
        }
        tail
    }

    #[test]
    fn blocks_are_found_by_their_index() {
        let mut tail = example();
        assert_eq!(tail.last(), Index(8));
        assert_eq!(tail.location(Index(4)).unwrap().position, Position(400));
        assert_eq!(tail.location(Index(3)), None);
        let bytes = |first, last| tail.bytes(Index(first), Index(last));
        assert_eq!([bytes(0, 3), bytes(0, 4), bytes(4, 6)], [0, 80, 160]);
        assert_eq!([bytes(8, 20), bytes(6, 20), bytes(7, 5)], [0, 160, 0]);
        assert_eq!(tail.location(Index(9)), None);
        let mut forgotten = Vec::new();
        tail.forget(Index(5), |body| forgotten.push(body[0]));
        assert_eq!(forgotten, [4, 5]);
        assert_eq!(tail.body(Index(5)), None);
        assert_eq!(tail.body(Index(6)).unwrap()[0], 6);
        assert_eq!(tail.location(Index(5)).unwrap().position, Position(500));
    }

    #[test]
    fn filing_drops_the_front_and_cutting_the_end() {
        let mut tail = example();
        assert_eq!(tail.last_before(Position(600)), Index(5));
        assert_eq!(tail.last_before(Position(0)), Index(3));
        assert!(tail.file(Index(5)));
        assert!(!tail.file(Index(5)));
        tail.cut(Index(8));
        assert_eq!(tail.location(Index(5)), None);
        assert_eq!(tail.body(Index(6)).unwrap()[0], 6);
        assert_eq!(tail.last(), Index(7));
        assert_eq!(tail.body(Index(8)), None);
        tail.file(Index(7));
        assert_eq!(tail.last(), Index(7));
    }
}

//! A shard's durable blocks that are not filed: where they stand, and the youngest in memory.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::{Index, Position};

/// Where a durable block stands in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) position: Position,
    /// Bytes of header and body.
    pub(crate) length: u32,
    pub(crate) time_ms: u64,
}

/// See the module's documentation. Indexes in it are dense.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The index of the first in `placed`.
    first: u64,
    placed: VecDeque<Placed>,
    /// The bodies of the last blocks, as many as memory allows.
    bodies: VecDeque<Bytes>,
}

impl Tail {
    /// Nothing is there; the next block has this index.
    pub(crate) fn starting_at(next: Index) -> Tail {
        Tail {
            first: next.0,
            ..Tail::default()
        }
    }

    /// The index of the first block that is not filed, whether it is there yet or not.
    pub(crate) fn first(&self) -> Index {
        Index(self.first)
    }

    /// The last block's index.
    pub(crate) fn last(&self) -> Index {
        Index(self.end() - 1)
    }

    /// Adds the next block; its body stays in memory until it is forgotten.
    pub(crate) fn push(&mut self, placed: Placed, body: Bytes) {
        self.placed.push_back(placed);
        self.bodies.push_back(body);
    }

    /// Adds the next block without its body. Bodies of blocks before it are forgotten.
    pub(crate) fn push_unread(&mut self, placed: Placed) {
        self.placed.push_back(placed);
        self.bodies.clear();
    }

    pub(crate) fn placed(&self, index: Index) -> Option<Placed> {
        let place = index.0.checked_sub(self.first)?;
        self.placed.get(place as usize).copied()
    }

    /// The body, if it is in memory.
    pub(crate) fn body(&self, index: Index) -> Option<Bytes> {
        let first = self.end() - self.bodies.len() as u64;
        let place = index.0.checked_sub(first)?;
        self.bodies.get(place as usize).cloned()
    }

    /// Forgets the bodies of blocks up to `index`, each of which is handed over.
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

    /// The last block before a position; 0 if all are behind it.
    pub(crate) fn last_before(&self, position: Position) -> Index {
        let before = self
            .placed
            .partition_point(|block| block.position < position);
        Index(self.first + before as u64 - 1)
    }

    /// Blocks up to `index` are filed. Whether that is news.
    pub(crate) fn file(&mut self, index: Index) -> bool {
        let first = self.first;
        self.forget(index, drop);
        while self.first <= index.0 && self.placed.pop_front().is_some() {
            self.first += 1;
        }
        self.placed.shrink_to(self.placed.len() * 2);
        first < self.first
    }

    /// Blocks from `index` on are void.
    pub(crate) fn cut(&mut self, index: Index) {
        while self.end() > index.0 && self.placed.pop_back().is_some() {
            self.bodies.pop_back();
        }
    }

    fn end(&self) -> u64 {
        self.first + self.placed.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Tail {
        let mut tail = Tail::starting_at(Index(4));
        for index in 4..9u64 {
            let placed = Placed {
                position: Position(index * 100),
                length: 80,
                time_ms: index,
            };
            tail.push(placed, Bytes::from(vec![index as u8]));
        }
        tail
    }

    #[test]
    fn blocks_are_found_by_their_index() {
        let mut tail = example();
        assert_eq!(tail.last(), Index(8));
        assert_eq!(tail.placed(Index(4)).unwrap().position, Position(400));
        assert_eq!(tail.placed(Index(3)), None);
        assert_eq!(tail.placed(Index(9)), None);
        let mut forgotten = Vec::new();
        tail.forget(Index(5), |body| forgotten.push(body[0]));
        assert_eq!(forgotten, [4, 5]);
        assert_eq!(tail.body(Index(5)), None);
        assert_eq!(tail.body(Index(6)).unwrap()[0], 6);
        assert_eq!(tail.placed(Index(5)).unwrap().position, Position(500));
    }

    #[test]
    fn filing_and_cutting_drop_their_ends() {
        let mut tail = example();
        assert_eq!(tail.last_before(Position(600)), Index(5));
        assert_eq!(tail.last_before(Position(0)), Index(3));
        assert!(tail.file(Index(5)));
        assert!(!tail.file(Index(5)));
        tail.cut(Index(8));
        assert_eq!(tail.placed(Index(5)), None);
        assert_eq!(tail.body(Index(6)).unwrap()[0], 6);
        assert_eq!(tail.last(), Index(7));
        assert_eq!(tail.body(Index(8)), None);
        tail.file(Index(7));
        assert_eq!(tail.last(), Index(7));
    }
}

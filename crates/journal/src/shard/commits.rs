//! Which blocks are committed, void or purged.

use bytes::Bytes;

use super::{BlockBytes, State, Trim};
use crate::block::BlockKind;
use crate::{Index, Position};

impl State {
    /// Returns the index up to which readers see blocks.
    pub(crate) fn committed(&self) -> Index {
        self.committed
    }

    /// Returns the last block that is known to be committed, here or not.
    pub(crate) fn last_commit_known(&self) -> Index {
        self.commit_known
    }

    /// Returns the bytes of the records in blocks that are not committed, on disk or not.
    pub(crate) fn uncommitted_bytes(&self) -> u64 {
        self.uncommitted.bytes() + self.building_size() as u64
    }

    /// Shows blocks up to `index` to readers, now or as soon as they are on disk here, and applies
    /// their trims, each of which is passed to `visit`.
    pub(crate) fn commit(&mut self, index: Index, visit: impl FnMut(&Trim)) {
        self.commit_known = self.commit_known.max(index);
        self.commit_known(visit);
    }

    /// Like [`State::commit`], for the blocks that are known to be committed and on disk.
    pub(crate) fn commit_known(&mut self, mut visit: impl FnMut(&Trim)) {
        let index = self.commit_known.min(self.tail.last());
        self.uncommitted
            .commit(index.0.saturating_sub(self.committed.0));
        self.committed = self.committed.max(index);
        let committed = self.trims.partition_point(|trim| trim.index <= index);
        for trim in self.trims.drain(..committed) {
            if let Some(stream) = self.streams.get_mut(&trim.stream) {
                stream.start = stream.start.max(trim.start);
                stream.next = stream.next.max(stream.start);
            }
            visit(&trim);
        }
    }

    /// Voids the blocks from `index` on, on disk or not, and builds a block that says so. They must
    /// be above the committed index, and there must be no reign.
    pub(crate) fn cut(&mut self, index: Index) {
        self.void_from(index);
        let bytes = BlockBytes::Owned(self.header_room(0));
        self.close(BlockKind::Cut, index, self.terms.last(), bytes);
        self.cuts_pending.push_back(index);
    }

    /// Drops all blocks from `index` on.
    pub(crate) fn void_from(&mut self, index: Index) {
        for stream in self.streams.values_mut() {
            stream.cut(index);
        }
        self.trims.retain(|trim| trim.index < index);
        self.tail.cut(index);
        self.taken.retain(|block| block.index < index);
        self.terms.cut(index);
        self.uncommitted.retain(index.0 - 1 - self.committed.0);
        self.next = index;
    }

    /// Returns true if all blocks of the shard before a position are committed, or voided by a cut
    /// that is in the line.
    pub(crate) fn is_settled_before(&self, position: Position) -> bool {
        self.cuts_pending.is_empty() && self.last_before(position) <= self.committed
    }

    /// Returns the position of the shard's first block that is not committed; `end` if a cut that is
    /// not in the line is the only thing that waits.
    pub(crate) fn first_unsettled(&self, end: Position) -> Position {
        let first = self.tail.location(Index(self.committed.0 + 1));
        first.map_or(end, |block| block.position)
    }

    /// Allows the filing of blocks up to `index` that are held for peers.
    pub(crate) fn purge(&mut self, index: Index) {
        self.purged = self.purged.max(index);
    }

    /// Returns true if all blocks of the shard before a position are purged.
    pub(crate) fn is_purged_before(&self, position: Position) -> bool {
        self.last_before(position) <= self.purged
    }

    /// Returns the index of the shard's last block before a position.
    fn last_before(&self, position: Position) -> Index {
        self.tail.last_before(position)
    }

    /// Returns the bodies of the blocks after `before`, up to the committed one; `None` if some of
    /// them are not in memory.
    pub(super) fn committed_after(&self, before: Index) -> Option<Vec<Bytes>> {
        let indexes = before.0 + 1..=self.committed.0;
        indexes.map(|index| self.tail.body(Index(index))).collect()
    }
}

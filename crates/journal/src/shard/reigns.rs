//! Reigns: this node's leadership of the shard.

use super::{BlockBytes, BlockOrder, BuiltBlock, State};
use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::{Index, Reign};

impl State {
    /// Returns the current reign.
    pub(crate) fn reign(&self) -> Option<Reign> {
        self.reign
    }

    /// Begins a reign; its blocks have this term. There must be no current one.
    pub(crate) fn begin_reign(&mut self, term: u64, order: BlockOrder) -> Reign {
        debug_assert_eq!(self.reign, None, "one reign at a time");
        debug_assert!(term >= self.terms.last(), "terms do not fall");
        self.order = order;
        self.reigns = self
            .reigns
            .checked_add(1)
            .expect("numbers are never used again");
        self.term = term;
        *self.reign.insert(Reign(self.reigns))
    }

    /// Ends the current reign. Drops the blocks that neither the line nor a consensus has taken.
    /// Returns the last taken block, and the bytes that were dropped; `None` if there is no reign.
    pub(crate) fn end_reign(&mut self) -> Option<(Index, u64)> {
        self.reign.take()?;
        self.offered = 0;
        self.is_paused = false;
        let is_own = |it: &mut BuiltBlock| {
            it.kind == BlockKind::Records && matches!(it.bytes, BlockBytes::Owned(_))
        };
        let closed = self.closed.extract_if(.., is_own);
        let closed = closed.map(|it| (it.index, it.bytes.body_size()));
        let proposed = self.proposed.drain(..);
        let proposed = proposed.map(|it| (it.block.index, it.block.body.len()));
        let building = self.building.take().into_iter();
        let building = building.map(|it| (it.index, it.bytes.len() - BLOCK_HEADER_SIZE));
        let dropped: Vec<_> = closed.chain(proposed).chain(building).collect();
        if let Some((first, _)) = dropped.first() {
            self.void_from(*first);
        }
        let bytes = dropped.iter().map(|(_, size)| *size as u64).sum();
        Some((self.end().index, bytes))
    }
}

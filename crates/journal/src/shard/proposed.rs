//! Proposed blocks: closed blocks of a reign whose order a consensus decides.
//!
//! ```text
//! ## building => proposed => offered => taken => on disk
//! ```
//!
//! A block that was offered stays here until it is handed over as a decided block, or the reign
//! ends. Blocks are handed over in the order in which they were offered.

use bytes::Bytes;

use super::{BlockOrder, BuildingBlock, DecidedBlock, ProposedBlock, State};
use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::buffers;

impl State {
    /// Adds a closed block to the proposed ones.
    pub(super) fn propose(&mut self, mut building: BuildingBlock) {
        buffers::free_rest(&mut building.bytes);
        let block = DecidedBlock {
            kind: BlockKind::Records,
            term: self.term,
            index: building.index,
            time_ms: building.time_ms,
            body: Bytes::from(building.bytes).slice(BLOCK_HEADER_SIZE..),
        };
        let count = building.count;
        self.proposed.push_back(ProposedBlock { block, count });
    }

    /// Returns the next block to propose, if there is one. Closes the block that is being built if
    /// no other is left.
    pub(crate) fn take_closed(&mut self) -> Option<DecidedBlock> {
        if !self.is_proposed() {
            return None;
        }
        if self.offered == self.proposed.len() {
            self.close_block();
        }
        let next = self.proposed.get(self.offered)?;
        self.offered += 1;
        Some(next.block.clone())
    }

    /// Returns true if blocks of the current reign, or of the one before it, wait for a consensus.
    pub(crate) fn is_proposed(&self) -> bool {
        self.order == BlockOrder::Proposed
    }
}

//! Taking decided blocks: entries of a shard's replicated log, decided by its leader.
//!
//! A follower adds a block that is the next in its shard, whose term does not fall, and whose
//! records continue their streams. Recovery checks the blocks that it replays by the same rules.

use std::collections::BTreeMap;

use super::decided_block::members_of;
use super::{BlockBytes, BuiltBlock, DecidedBlock, DecidedError, ProposedBlock, State, Trim};
use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::record::{self, RecordKind};
use crate::{Index, StreamId};

/// A record that does not continue its stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OffsetGap {
    pub(crate) stream: StreamId,
    /// The stream's next offset.
    pub(crate) next: u64,
    /// Offset of the record, which is higher.
    pub(crate) offset: u64,
}

/// The decision that a block of a leader's log comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The current reign: the block was proposed and is in the table of streams.
    Reign,
    /// The consensus in the current reign's term, with this number of records.
    Consensus { count: u32 },
    /// Another leader. The current reign, if there is one, ends with it.
    Leader { count: u32 },
}

impl State {
    /// Returns the last block that is in the line or on its way into it: no proposed block, and none
    /// that is being built.
    pub(crate) fn last_taken(&self) -> Index {
        let building = self.building.as_ref().map(|building| building.index);
        let proposed = self.proposed.front().map(|proposed| proposed.block.index);
        let untaken = proposed.or(building).unwrap_or(self.next);
        Index(untaken.0 - 1)
    }

    /// Returns the last block that can be read by index. Blocks of a reign that was led alone can be
    /// read when they are on disk.
    pub(crate) fn last_readable(&self) -> Index {
        let last = self.tail.last();
        match (self.taken.front(), self.taken.back()) {
            (Some(first), Some(taken)) if first.index.0 <= last.0 + 1 => taken.index,
            _ => last,
        }
    }

    /// Returns a decided block that is not on disk yet.
    pub(crate) fn taken(&self, index: Index) -> Option<&DecidedBlock> {
        let first = self.taken.front()?.index;
        let place = index.0.checked_sub(first.0)?;
        self.taken.get(place as usize)
    }

    /// Checks a block that consensus hands over. `size_max` is the limit on header and body.
    pub(crate) fn check_decided(
        &self,
        block: &DecidedBlock,
        size_max: usize,
    ) -> Result<Origin, DecidedError> {
        let last = self.last_taken();
        let (index, next) = (block.index, Index(last.0 + 1));
        if index != next {
            return Err(DecidedError::NotNext { index, next });
        }
        let size = BLOCK_HEADER_SIZE + block.body.len();
        if size > size_max {
            let limit = size_max;
            return Err(DecidedError::TooLarge { size, limit });
        }
        if self.reign.is_some() && (block.term <= self.term || !self.is_proposed()) {
            return self.check_own(block);
        }
        self.check_term(block.index, block.term)?;
        let count = self.check_records(block.kind, block.index, &block.body, |_| false)?;
        Ok(Origin::Leader { count })
    }

    /// Checks a block while a reign is current that no other leader ends: it is the next proposed
    /// one, or one that consensus added while nothing was proposed.
    fn check_own(&self, block: &DecidedBlock) -> Result<Origin, DecidedError> {
        let not_proposed = DecidedError::NotProposed { index: block.index };
        if block.term != self.term || !self.is_proposed() {
            return Err(not_proposed);
        }
        match self.proposed.front() {
            Some(front) if self.offered > 0 && front.block.is_same(block) => Ok(Origin::Reign),
            None if self.building.is_none() && block.kind != BlockKind::Records => {
                let count = self.check_records(block.kind, block.index, &block.body, |_| false)?;
                Ok(Origin::Consensus { count })
            }
            _ => Err(not_proposed),
        }
    }

    /// Checks that a block's term is not below that of the block before it.
    pub(crate) fn check_term(&self, index: Index, term: u64) -> Result<(), DecidedError> {
        match self.terms.at(Index(index.0 - 1)) {
            Some(last) if term < last => Err(DecidedError::Term { term, last }),
            _ => Ok(()),
        }
    }

    /// Checks that the records of block `index` continue their streams as they are before that
    /// block, and returns their number. `accepts` decides about gaps.
    pub(crate) fn check_records(
        &self,
        kind: BlockKind,
        index: Index,
        body: &[u8],
        mut accepts: impl FnMut(OffsetGap) -> bool,
    ) -> Result<u32, DecidedError> {
        let has_right_body = match kind {
            BlockKind::Records => true,
            BlockKind::Blank => body.is_empty(),
            BlockKind::Members => members_of(body).is_some(),
            BlockKind::Idle | BlockKind::Cut | BlockKind::Lost | BlockKind::Vote => {
                return Err(DecidedError::Kind { kind });
            }
        };
        if !has_right_body {
            return Err(DecidedError::Body { kind });
        }
        let mut count = 0;
        let mut nexts = BTreeMap::new();
        for parsed in record::records(body) {
            let (_, record) = parsed?;
            count += 1;
            if record.kind != RecordKind::Data {
                continue;
            }
            let (stream, offset) = (record.stream, record.offset);
            let next = nexts
                .entry(stream)
                .or_insert_with(|| self.next_before(stream, index));
            let gap = OffsetGap {
                stream,
                next: *next,
                offset,
            };
            if offset < *next || (offset > *next && !accepts(gap)) {
                return Err(DecidedError::Offset {
                    stream,
                    offset,
                    next: *next,
                });
            }
            *next = offset + 1;
        }
        Ok(count)
    }

    /// Returns a stream's next offset after all blocks before `index`.
    fn next_before(&self, stream: StreamId, index: Index) -> u64 {
        let stream = self.streams.get(&stream);
        stream.map_or(0, |stream| stream.next_at(Index(index.0 - 1)))
    }

    /// Passes the oldest proposed block to the line. It must be the one that was checked.
    pub(crate) fn take_proposed(&mut self) {
        if let Some(ProposedBlock { block, count }) = self.proposed.pop_front() {
            self.offered -= 1;
            self.pass_to_line(block, count);
        }
    }

    /// Adds a checked block to the table of streams and passes it to the line. No block may be
    /// proposed or under construction.
    pub(crate) fn push_decided(&mut self, block: &DecidedBlock, count: u32) {
        self.apply(
            block.kind,
            block.index,
            block.term,
            block.time_ms,
            &block.body,
        );
        self.pass_to_line(block.clone(), count);
    }

    fn pass_to_line(&mut self, block: DecidedBlock, count: u32) {
        self.closed.push(BuiltBlock {
            kind: block.kind,
            shard: self.id,
            index: block.index,
            term: block.term,
            count,
            time_ms: block.time_ms,
            bytes: BlockBytes::Shared(block.body.clone()),
        });
        self.taken.push_back(block);
    }

    /// Adds the records of the shard's next block to the table of streams. They must have been
    /// checked.
    pub(crate) fn apply(
        &mut self,
        kind: BlockKind,
        index: Index,
        term: u64,
        time_ms: u64,
        body: &[u8],
    ) {
        debug_assert!(kind.is_entry(), "{kind:?}");
        self.next = Index(index.0 + 1);
        self.terms.push(index, term);
        self.uncommitted.add(body.len());
        self.time_ms = self.time_ms.max(time_ms);
        for (place, record) in record::records(body).map_while(Result::ok) {
            let stream = self.streams.entry(record.stream).or_default();
            match record.kind {
                RecordKind::Data => {
                    stream.next = stream.next.max(record.offset);
                    stream.push(index, place as u32, record.bytes.len() as u32);
                }
                RecordKind::Trim | RecordKind::Erase => self.trims.push_back(Trim {
                    index,
                    stream: record.stream,
                    start: record.offset,
                    kind: record.kind,
                    time_ms,
                }),
            }
        }
    }
}

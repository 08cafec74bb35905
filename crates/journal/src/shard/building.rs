//! Building blocks: records are encoded into the block that the line, or a consensus, takes next.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{BlockBytes, BlockOrder, BuildingBlock, BuiltBlock, State, Trim};
use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::record::{self, RecordHeader, RecordKind};
use crate::votes::Vote;
use crate::{Index, StreamId};

/// Size at which a block is closed when the next writer comes. Reading one record reads its whole
/// block.
const BLOCK_SIZE_CLOSE: usize = 1 << 20;

/// Capacity limit of a new block. Otherwise a block is allocated as large as the largest of the last ones
/// was, so that it is not copied while it grows.
const BLOCK_CAPACITY_MAX: usize = BLOCK_SIZE_CLOSE + BLOCK_SIZE_CLOSE / 4;

/// The part by which the capacity of the next block falls when a block is smaller, as a divisor.
const BLOCK_CAPACITY_DECAY: usize = 8;

/// Milliseconds by which the caller's clock may be behind the last record without record times
/// going back: one minute. Up to that they stand still, so that small corrections of the clock
/// leave records in time order.
const TIME_BACK_MS_MAX: u64 = 60_000;

impl State {
    /// Returns the size of the block being built; 0 if there is none.
    pub(crate) fn building_size(&self) -> usize {
        self.building.as_ref().map_or(0, |built| built.bytes.len())
    }

    /// Returns true if the next writer should begin a new block.
    pub(crate) fn is_due_to_close(&self) -> bool {
        self.building_size() >= BLOCK_SIZE_CLOSE
    }

    /// Closes the block being built; the next record begins a new one.
    pub(crate) fn close_block(&mut self) {
        let Some(building) = self.building.take() else {
            return;
        };
        let decayed = self.capacity - self.capacity / BLOCK_CAPACITY_DECAY;
        self.capacity = building.bytes.len().max(decayed).min(BLOCK_CAPACITY_MAX);
        self.uncommitted
            .add(building.bytes.len() - BLOCK_HEADER_SIZE);
        match self.order {
            BlockOrder::Alone => self.closed.push(BuiltBlock {
                kind: BlockKind::Records,
                shard: self.id,
                index: building.index,
                term: self.term,
                count: building.count,
                time_ms: building.time_ms,
                bytes: BlockBytes::Owned(building.bytes),
            }),
            BlockOrder::Proposed => self.propose(building),
        }
    }

    /// Returns the index of the block that the next record goes into.
    pub(crate) fn building_index(&self) -> Index {
        self.building
            .as_ref()
            .map_or(self.next, |built| built.index)
    }

    /// Appends a record to a stream, and returns its offset; its payload is in parts.
    pub(crate) fn append(
        &mut self,
        stream: StreamId,
        tag: u8,
        payload: &[&[u8]],
        now_ms: u64,
    ) -> u64 {
        let time_ms = self.advance_time(now_ms);
        let (index, place) = self.next_place(time_ms);
        let entry = self.streams.entry(stream).or_default();
        let offset = entry.next;
        let length = record::size_of_parts(payload);
        entry.push(index, place, length as u32);
        let header = RecordHeader {
            stream,
            offset,
            kind: RecordKind::Data,
            tag,
            length,
        };
        self.encode(&header, payload, time_ms);
        offset
    }

    /// Appends a trim or an erase. It takes effect when its block is committed.
    pub(crate) fn mark(&mut self, kind: RecordKind, stream: StreamId, start: u64, now_ms: u64) {
        let header = RecordHeader {
            stream,
            offset: start,
            kind,
            tag: 0,
            length: 0,
        };
        let time_ms = self.advance_time(now_ms);
        let (index, _) = self.next_place(time_ms);
        self.encode(&header, &[], time_ms);
        self.trims.push_back(Trim {
            index,
            stream,
            start,
            kind,
            time_ms,
        });
    }

    /// Returns the time of a record that is appended now.
    fn advance_time(&mut self, now_ms: u64) -> u64 {
        // If the clock was ahead for a while and is right again, the record times follow it back.
        if now_ms > self.time_ms || self.time_ms - now_ms > TIME_BACK_MS_MAX {
            self.time_ms = now_ms;
        }
        self.time_ms
    }

    /// Returns the block of the next record and the record's place in it. Begins a block if there is
    /// none; the caller must encode a record into it.
    fn next_place(&mut self, time_ms: u64) -> (Index, u32) {
        let built = match &mut self.building {
            Some(built) => built,
            None => {
                let building = BuildingBlock {
                    index: self.next,
                    count: 0,
                    time_ms,
                    bytes: self.header_room(self.capacity),
                };
                self.terms.push(self.next, self.term);
                self.next.0 += 1;
                self.building.insert(building)
            }
        };
        let place = built.bytes.len() - BLOCK_HEADER_SIZE;
        (built.index, place as u32)
    }

    /// Encodes a record with this payload at [`State::next_place`].
    fn encode(&mut self, header: &RecordHeader, payload: &[&[u8]], time_ms: u64) {
        if let Some(built) = &mut self.building {
            record::encode_parts(header, payload, &mut built.bytes);
            built.count += 1;
            built.time_ms = time_ms;
        }
    }

    /// Returns a buffer with room for a block's header.
    pub(super) fn header_room(&mut self, capacity: usize) -> Vec<u8> {
        let mut bytes = self.buffers.take(capacity.max(BLOCK_HEADER_SIZE));
        bytes.resize(BLOCK_HEADER_SIZE, 0);
        bytes
    }

    /// Moves the blocks for the line to `queue`, in order.
    pub(crate) fn take_built(&mut self, queue: &mut VecDeque<BuiltBlock>) {
        if self.order == BlockOrder::Alone {
            self.close_block();
        }
        queue.extend(self.closed.drain(..));
    }

    /// Builds a block that a vote is in.
    pub(crate) fn save_vote(&mut self, vote: Vote) -> u64 {
        let body = Bytes::copy_from_slice(vote.bytes());
        let bytes = BlockBytes::Shared(body);
        self.close(BlockKind::Vote, Index(0), vote.term(), bytes);
        self.votes.add(vote)
    }

    /// Adds a block without records to those for the line.
    pub(super) fn close(&mut self, kind: BlockKind, index: Index, term: u64, bytes: BlockBytes) {
        self.closed.push(BuiltBlock {
            kind,
            shard: self.id,
            index,
            term,
            count: 0,
            time_ms: self.time_ms,
            bytes,
        });
    }
}

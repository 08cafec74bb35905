//! Blocks of a shard on their way to the disk.

use bytes::Bytes;

use super::decided_block::DecidedBlock;
use crate::block::{BLOCK_HEADER_SIZE, BlockKind};
use crate::record::RecordKind;
use crate::tail::BlockLocation;
use crate::{Index, ShardId, StreamId};

/// Decides when the blocks of a reign go into the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockOrder {
    /// A closed block goes into the line as soon as that has room.
    Alone,
    /// A closed block goes into the line when it is decided: see
    /// [`Journal::append_decided`](crate::Journal::append_decided).
    Proposed,
}

/// A block that is being built.
#[derive(Debug)]
pub(super) struct BuildingBlock {
    pub(super) index: Index,
    pub(super) count: u32,
    pub(super) time_ms: u64,
    /// Room for the header, followed by the body.
    pub(super) bytes: Vec<u8>,
}

/// A block that is built and not written yet.
#[derive(Debug)]
pub(crate) struct BuiltBlock {
    pub(crate) kind: BlockKind,
    pub(crate) shard: ShardId,
    pub(crate) index: Index,
    pub(crate) term: u64,
    pub(crate) count: u32,
    pub(crate) time_ms: u64,
    pub(crate) bytes: BlockBytes,
}

/// Bytes of a block that is built.
#[derive(Debug)]
pub(crate) enum BlockBytes {
    /// Room for the header, followed by the body.
    Owned(Vec<u8>),
    /// The body, which has other readers.
    Shared(Bytes),
}

/// A closed block that is not decided yet.
#[derive(Debug)]
pub(super) struct ProposedBlock {
    pub(super) block: DecidedBlock,
    /// Number of records.
    pub(super) count: u32,
}

/// A block that is on disk.
#[derive(Debug)]
pub(crate) struct WrittenBlock {
    pub(crate) kind: BlockKind,
    pub(crate) index: Index,
    pub(crate) location: BlockLocation,
    /// Bytes of memory that the body occupies.
    pub(crate) room: usize,
    pub(crate) body: Bytes,
}

/// A trim or an erase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trim {
    pub(crate) index: Index,
    pub(crate) stream: StreamId,
    pub(crate) start: u64,
    pub(crate) kind: RecordKind,
    pub(crate) time_ms: u64,
}

impl BlockBytes {
    /// Returns the bytes of the body.
    pub(super) fn body_size(&self) -> usize {
        match self {
            BlockBytes::Owned(bytes) => bytes.len() - BLOCK_HEADER_SIZE,
            BlockBytes::Shared(body) => body.len(),
        }
    }

    /// Returns the bytes of header and body.
    pub(crate) fn size(&self) -> usize {
        BLOCK_HEADER_SIZE + self.body_size()
    }
}

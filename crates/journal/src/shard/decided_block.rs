//! Decided blocks as values, and why one is refused.

use bytes::Bytes;

use crate::block::BlockKind;
use crate::record::{self, RecordError, RecordKind, RecordView};
use crate::{Index, StreamId};

/// Stream of the records in blocks of kind [`BlockKind::Members`], one per block.
pub const MEMBERS_STREAM: StreamId = StreamId(u64::MAX);

/// Bytes of a membership at most.
pub const MEMBERS_SIZE_MAX: usize = 64 << 10;

/// A block with its place in its shard's log: an entry of the replicated log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedBlock {
    /// The block's purpose; one that has an index.
    pub kind: BlockKind,
    /// The term of the leader that decided the block.
    pub term: u64,
    /// Index of the block in its shard.
    pub index: Index,
    /// Time of the block's last record, in milliseconds since 1970.
    pub time_ms: u64,
    /// The records, back to back.
    pub body: Bytes,
}

impl DecidedBlock {
    /// Creates a block without records, as a leader appends at the beginning of its term.
    pub fn blank(term: u64, index: Index, time_ms: u64) -> DecidedBlock {
        DecidedBlock {
            kind: BlockKind::Blank,
            term,
            index,
            time_ms,
            body: Bytes::new(),
        }
    }

    /// Creates a block with a membership of at most [`MEMBERS_SIZE_MAX`] bytes. `offset` is the next
    /// offset of [`MEMBERS_STREAM`].
    pub fn members(
        term: u64,
        index: Index,
        time_ms: u64,
        offset: u64,
        members: &[u8],
    ) -> DecidedBlock {
        let mut body = Vec::new();
        let record = RecordView {
            stream: MEMBERS_STREAM,
            offset,
            kind: RecordKind::Data,
            tag: 0,
            bytes: members,
        };
        record::encode(&record, &mut body);
        DecidedBlock {
            kind: BlockKind::Members,
            term,
            index,
            time_ms,
            body: body.into(),
        }
    }

    /// Returns the membership in a block of kind [`BlockKind::Members`].
    pub fn as_members(&self) -> Option<Bytes> {
        if self.kind != BlockKind::Members {
            return None;
        }
        members_of(&self.body).map(|record| self.body.slice_ref(record.bytes))
    }
    /// Returns true if the other block is this one, handed around and not copied.
    pub(super) fn is_same(&self, other: &DecidedBlock) -> bool {
        let place = |block: &DecidedBlock| (block.body.as_ptr(), block.body.len());
        let header = |block: &DecidedBlock| (block.kind, block.term, block.index, block.time_ms);
        place(self) == place(other) && header(self) == header(other)
    }
}

/// A decided block that is refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecidedError {
    /// The index is not the next in the shard's log.
    #[error("block {} is not the next one, which is {}", index.0, next.0)]
    NotNext {
        /// Index of the block.
        index: Index,
        /// The next index.
        next: Index,
    },
    /// The term is lower than that of the block before it.
    #[error("the term {term} is lower than {last}, the term of the block before it")]
    Term {
        /// Term of the block.
        term: u64,
        /// Term of the last block.
        last: u64,
    },
    /// This node leads the shard in the block's term, and has not proposed the block next.
    #[error("block {} is not the next proposed block", index.0)]
    NotProposed {
        /// Index of the block.
        index: Index,
    },
    /// Blocks of this kind are not entries of the log.
    #[error("blocks of kind {kind:?} are not entries of the log")]
    Kind {
        /// Kind of the block.
        kind: BlockKind,
    },
    /// The block does not fit into a segment.
    #[error("a block of {size} bytes is too large (limit {limit} bytes)")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The body of a members block is not one record with a membership, or a blank block has one.
    #[error("the body does not belong to a block of kind {kind:?}")]
    Body {
        /// Kind of the block.
        kind: BlockKind,
    },
    /// A record is malformed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record does not continue its stream.
    #[error("offset {offset} of stream {:016x} is not its next, {next}", stream.0)]
    Offset {
        /// The stream.
        stream: StreamId,
        /// Offset of the record.
        offset: u64,
        /// The stream's next offset.
        next: u64,
    },
    /// The journal has failed.
    #[error("the journal has failed")]
    Failed,
}

/// Returns the record of a members block; `None` if the body is not such a record.
pub(super) fn members_of(body: &[u8]) -> Option<RecordView<'_>> {
    let record = record::decode(body, 0).ok()?;
    let is_whole = record.size() == body.len() && record.bytes.len() <= MEMBERS_SIZE_MAX;
    let is_members = record.stream == MEMBERS_STREAM && record.kind == RecordKind::Data;
    (is_whole && is_members).then_some(record)
}

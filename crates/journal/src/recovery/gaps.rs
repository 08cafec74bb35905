//! Gaps in streams after lost records.
//!
//! The stream's next offset before a gap is stored here only: it is needed again if a cut voids the
//! record after the gap.

use crate::shard::State;
use crate::{Index, ShardId, StreamId};

/// The gaps found during replay.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<Gap>);

#[derive(Clone, Copy, Debug)]
struct Gap {
    shard: ShardId,
    /// Index of the block after the gap.
    index: Index,
    stream: StreamId,
    /// The stream's next offset before the gap.
    next: u64,
}

impl Gaps {
    /// Adds a gap: a record in block `index` does not continue its stream, whose next offset was
    /// `next`.
    pub(super) fn note(&mut self, shard: ShardId, index: Index, stream: StreamId, next: u64) {
        self.0.push(Gap {
            shard,
            index,
            stream,
            next,
        });
    }

    /// Removes the gaps in blocks from `index` on, which are void, and restores the streams' next
    /// offsets.
    pub(super) fn void_from(&mut self, shard: ShardId, index: Index, state: &mut State) {
        self.0.retain(|gap| {
            let is_void = gap.shard == shard && gap.index >= index;
            if is_void && let Some(stream) = state.streams.get_mut(&gap.stream) {
                stream.next = stream.next.min(gap.next);
            }
            !is_void
        });
    }
}

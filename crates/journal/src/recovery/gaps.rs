//! Where streams go on behind records that are not there.
//!
//! What a stream's next offset was before a gap is nowhere else: the first record behind it says
//! what it was after the gap. If a cut makes that record void, it is needed again.

use crate::shard::State;
use crate::{Index, ShardId, StreamId};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<Gap>);

#[derive(Clone, Copy, Debug)]
struct Gap {
    shard: ShardId,
    /// The block behind it.
    index: Index,
    stream: StreamId,
    /// The stream's next offset before it.
    next: u64,
}

impl Gaps {
    /// A record in this block does not follow its stream, whose next offset would have been this.
    pub(super) fn note(&mut self, shard: ShardId, index: Index, stream: StreamId, next: u64) {
        self.0.push(Gap {
            shard,
            index,
            stream,
            next,
        });
    }

    /// The shard's blocks from `index` on are void, and the gaps before them with them.
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

//! Reading a shard's log for openraft.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use futures_util::{Stream, TryStreamExt, stream};
use journal::LastVote;
use openraft::OptionalSend;
use openraft::storage::RaftLogReader;

use super::types::{Types, Vote};
use super::votes::decode_vote;
use super::{Entry, ShardLog};

/// Bytes of blocks from which on a read ends.
const READ_SIZE_MAX: usize = 2 << 20;

/// A reader of the log.
#[derive(Clone)]
pub(crate) struct Reader(Arc<ShardLog>);

impl Reader {
    pub(super) fn new(log: Arc<ShardLog>) -> Reader {
        Reader(log)
    }
}

impl RaftLogReader<Types> for Reader {
    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl Stream<Item = Result<Entry, io::Error>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (start, end) = bounds(&range);
        let log = self.0.clone();
        let pieces = stream::try_unfold(start, move |start| {
            let read = log.read(start, end, READ_SIZE_MAX);
            std::future::ready(read.map(|entries| {
                let next = entries.last()?.log_id.index + 1;
                let piece = stream::iter(entries.into_iter().map(Ok));
                Some((piece, next))
            }))
        });
        Box::pin(pieces.try_flatten())
    }

    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        let (start, end) = bounds(&range);
        self.0.read(start, end, usize::MAX)
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, io::Error> {
        self.0.read(start, end, READ_SIZE_MAX)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        match self.0.journal.last_vote(self.0.shard) {
            LastVote::Never => Ok(None),
            LastVote::Known(vote) => decode_vote(&vote).map(Some),
            LastVote::Lost => Err(io::Error::other("the last vote is lost")),
        }
    }
}

/// Returns the first index of a range, and the index after the last one.
fn bounds(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    (start, end)
}

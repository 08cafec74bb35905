//! Trims and erases of a shard in a segment, in the order of their streams.

use super::Line;
use super::summary::Mark;
use crate::extent::Entry;
use crate::{ShardId, StreamId};

/// Trims and erases of a shard, of which those of the first streams are used already.
#[derive(Debug, Default)]
pub(super) struct Marks {
    list: Vec<Mark>,
    at: usize,
}

impl Marks {
    /// Sorts trims and erases.
    pub(super) fn new(mut list: Vec<Mark>) -> Marks {
        list.sort_unstable_by_key(|mark| mark.stream);
        Marks { list, at: 0 }
    }

    /// Returns the number of all trims and erases.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns all trims and erases.
    pub(super) fn all(&self) -> &[Mark] {
        &self.list
    }

    /// Returns the stream of the next one.
    pub(super) fn stream(&self) -> Option<u64> {
        self.list.get(self.at).map(|mark| mark.stream)
    }

    /// Returns the state of a stream as of this segment, where its last record has the offset `last`.
    /// Uses the trims and erases of the stream.
    pub(super) fn entry(
        &mut self,
        shard: ShardId,
        stream: u64,
        last: Option<u64>,
        line: &dyn Line,
    ) -> Entry {
        let mut entry = Entry::new(StreamId(stream));
        while let Some(mark) = self.list.get(self.at).filter(|mark| mark.stream == stream) {
            entry.start = entry.start.max(mark.start);
            entry.erased = entry.erased.max(mark.erased);
            self.at += 1;
        }
        if let Some(last) = last {
            entry.next = last.saturating_add(1);
        }
        entry.next = entry.next.max(entry.start);
        let start = entry.start.max(line.start(shard, entry.stream));
        // A start beyond the stream's next offset here comes from later in the line, and will be
        // filed from there. If it were used here, the unfiled records before it would not continue
        // the stream.
        entry.start = start.min(entry.next);
        entry
    }
}

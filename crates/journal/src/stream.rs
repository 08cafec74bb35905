//! In-memory state of a stream.
//!
//! A stream whose records are all filed costs one entry in the shard's table and nothing else.

use std::collections::VecDeque;

use crate::Index;

/// Consecutive records of one stream in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Offset of the first record; the others follow without a gap.
    pub(crate) first: u64,
    /// Index of the block.
    pub(crate) index: Index,
    /// Byte in the block's body at which the first record begins.
    pub(crate) place: u32,
    /// Bytes of all payloads.
    pub(crate) bytes: u32,
}

/// Start, end and unfiled runs of a stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Offset of the first record, as far as trims are committed.
    pub(crate) start: u64,
    /// Offset of the next record.
    pub(crate) next: u64,
    /// Unfiled runs, ascending. Boxed, because most streams have none.
    #[expect(
        clippy::box_collection,
        reason = "a million idle streams pay 8 bytes, not 32"
    )]
    runs: Option<Box<VecDeque<Run>>>,
}

impl Stream {
    /// Creates a stream whose records are all filed.
    pub(crate) fn filed(start: u64, next: u64) -> Stream {
        Stream {
            start,
            next,
            runs: None,
        }
    }

    /// Returns the unfiled runs.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> + ExactSizeIterator {
        self.unfiled().iter()
    }

    /// Returns the offset of the first record in a block from `index` on, and the runs in such
    /// blocks, starting with the one that contains `offset`. Binary search: there may be very many
    /// earlier runs.
    pub(crate) fn runs_from(
        &self,
        index: Index,
        offset: u64,
    ) -> (Option<u64>, impl Iterator<Item = &Run>) {
        let runs = self.unfiled();
        let first = runs.partition_point(|run| run.index < index);
        let behind = runs.partition_point(|run| run.first <= offset);
        let wanted = runs.range(behind.saturating_sub(1).max(first)..);
        (runs.get(first).map(|run| run.first), wanted)
    }

    fn unfiled(&self) -> &VecDeque<Run> {
        static NONE: VecDeque<Run> = VecDeque::new();
        self.runs.as_deref().unwrap_or(&NONE)
    }

    /// Adds the record with the offset `next`.
    pub(crate) fn push(&mut self, index: Index, place: u32, bytes: u32) {
        let runs = self.runs.get_or_insert_default();
        match runs.back_mut() {
            Some(last) if last.index == index => last.bytes += bytes,
            _ => runs.push_back(Run {
                first: self.next,
                index,
                place,
                bytes,
            }),
        }
        self.next += 1;
    }

    /// Returns the last block with an unfiled record of the stream; 0 if there is none.
    pub(crate) fn last_index(&self) -> Index {
        self.runs().next_back().map_or(Index(0), |run| run.index)
    }

    /// Returns the offset after the last record in a block up to `index`.
    pub(crate) fn next_at(&self, index: Index) -> u64 {
        let later = self.runs().rev().take_while(|run| run.index > index).last();
        later.map_or(self.next, |run| run.first)
    }

    /// Drops the runs of blocks up to `index`, which are filed.
    pub(crate) fn file(&mut self, index: Index) {
        let Some(runs) = &mut self.runs else { return };
        let filed = runs.partition_point(|run| run.index <= index);
        runs.drain(..filed);
        match runs.is_empty() {
            true => self.runs = None,
            false => runs.shrink_to(runs.len() * 2),
        }
    }

    /// Drops the records of blocks from `index` on, which are void.
    pub(crate) fn cut(&mut self, index: Index) {
        let Some(runs) = &mut self.runs else { return };
        let kept = runs.partition_point(|run| run.index < index);
        if let Some(void) = runs.get(kept) {
            self.next = void.first;
        }
        runs.truncate(kept);
        if runs.is_empty() {
            self.runs = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Stream {
        let mut stream = Stream::filed(2, 10);
        for (index, place) in [(5, 0), (5, 30), (7, 60), (8, 0)] {
            stream.push(Index(index), place, 6);
        }
        stream
    }

    #[test]
    fn records_of_one_block_are_one_run() {
        let stream = example();
        let runs: Vec<_> = stream.runs().map(|run| (run.first, run.index.0)).collect();
        assert_eq!(runs, [(10, 5), (12, 7), (13, 8)]);
        assert_eq!(stream.next, 14);
        assert_eq!(stream.last_index(), Index(8));
    }

    #[test]
    fn runs_are_found_by_offset_and_by_block() {
        let stream = example();
        for (index, offset, first, offsets) in [
            (0, 0, Some(10), vec![10, 12, 13]),
            (5, 11, Some(10), vec![10, 12, 13]),
            (5, 12, Some(10), vec![12, 13]),
            (5, 99, Some(10), vec![13]),
            (6, 0, Some(12), vec![12, 13]),
            (6, 13, Some(12), vec![13]),
            (9, 0, None, vec![]),
            (9, 99, None, vec![]),
        ] {
            let (found, runs) = stream.runs_from(Index(index), offset);
            let runs: Vec<_> = runs.map(|run| run.first).collect();
            assert_eq!((found, runs), (first, offsets), "{index} {offset}");
        }
        assert_eq!(Stream::filed(2, 10).runs_from(Index(0), 5).0, None);
    }

    #[test]
    fn visible_end_is_the_last_durable_block() {
        let stream = example();
        let next: Vec<_> = [4, 5, 6, 7, 8]
            .map(|index| stream.next_at(Index(index)))
            .into();
        assert_eq!(next, [10, 12, 12, 13, 14]);
    }

    #[test]
    fn filing_drops_the_front_and_cutting_the_end() {
        let mut stream = example();
        stream.file(Index(6));
        stream.cut(Index(8));
        let runs: Vec<_> = stream.runs().map(|run| run.first).collect();
        assert_eq!((runs, stream.next), (vec![12], 13));
        stream.file(Index(7));
        assert_eq!((stream.runs().len(), stream.next), (0, 13));
    }

    #[test]
    fn idle_stream_takes_at_most_24_bytes() {
        assert!(size_of::<Stream>() <= 24);
    }
}

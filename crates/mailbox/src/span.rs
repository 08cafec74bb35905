//! Size of a mailbox's stream, and when trimming it is worthwhile.

use std::collections::VecDeque;

/// Bytes of records after which the ids of the newest writes are repeated, so that earlier records
/// can be trimmed.
const LONG_BYTES: u64 = 1 << 20;

/// Number of writes after which the ids are repeated.
const LONG_WRITES: u64 = 1024;

/// Bytes between two marks, which is the precision of [`Span::held_from`].
const MARK_BYTES: u64 = 64 << 10;

/// Counts the records of a stream, from its start on.
#[derive(Debug, Default)]
pub struct Span {
    start: u64,
    /// Bytes of all records ever counted.
    counted: u64,
    /// Offsets, each with the bytes counted before it.
    marks: VecDeque<(u64, u64)>,
    /// Number of writes since [`Span::rest`].
    writes: u64,
    /// Bytes since [`Span::rest`].
    bytes: u64,
}

impl Span {
    /// Creates a span of an empty stream that starts at `start`.
    pub fn new(start: u64) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// Counts a record that was appended or read back.
    pub fn push(&mut self, offset: u64, size: usize) {
        let is_far = |(_, before): &(u64, u64)| self.counted - before >= MARK_BYTES;
        if self.marks.back().is_none_or(is_far) {
            self.marks.push_back((offset, self.counted));
        }
        self.counted += size as u64;
        self.bytes += size as u64;
    }

    /// Counts the last record as a write.
    pub fn count_write(&mut self) {
        self.writes += 1;
    }

    /// Returns true if enough was appended to make a trim worthwhile.
    pub fn is_long(&self) -> bool {
        self.writes >= LONG_WRITES || self.bytes >= LONG_BYTES
    }

    /// Returns the offset of the oldest record.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the bytes of all records.
    pub fn held(&self) -> u64 {
        self.held_from(self.start)
    }

    /// Returns the bytes of the records from an offset on: at least that many, and up to 64 KiB and
    /// one record more.
    pub fn held_from(&self, offset: u64) -> u64 {
        let behind = self.marks.partition_point(|(mark, _)| *mark <= offset);
        let mark = self.marks.get(behind.saturating_sub(1));
        self.counted - mark.map_or(self.counted, |(_, before)| *before)
    }

    /// Removes the records before `start`.
    pub fn cut(&mut self, start: u64) {
        self.start = start;
        while self
            .marks
            .get(1)
            .is_some_and(|(offset, _)| *offset <= start)
        {
            self.marks.pop_front();
        }
    }

    /// Removes all records but the last, which has this size.
    pub fn cut_to_last(&mut self, offset: u64, size: usize) {
        self.start = offset;
        self.marks.clear();
        self.marks.push_back((offset, self.counted - size as u64));
    }

    /// Restarts the counts of [`Span::is_long`].
    pub fn rest(&mut self) {
        (self.writes, self.bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_bytes_are_those_pushed_and_not_cut() {
        let mut span = Span::new(7);
        assert_eq!((span.start(), span.held()), (7, 0));
        for offset in 7..107 {
            span.push(offset, 10_000);
        }
        assert_eq!(span.held(), 1_000_000);
        for start in [8, 50, 106] {
            let exactly = (107 - start) * 10_000;
            let extra = span.held_from(start) - exactly;
            span.cut(start);
            assert_eq!(span.held() - exactly, extra);
            assert!(extra < MARK_BYTES + 10_000, "{start}: {extra} too many");
        }
    }

    #[test]
    fn cut_to_last_leaves_the_last_record() {
        let mut span = Span::new(3);
        for offset in 3..6 {
            span.push(offset, 100);
        }
        span.cut_to_last(5, 100);
        assert_eq!((span.start(), span.held()), (5, 100));
        span.push(6, 20);
        assert_eq!(span.held(), 120);
    }

    #[test]
    fn span_is_long_after_many_writes_or_bytes() {
        let mut span = Span::new(0);
        span.push(0, LONG_BYTES as usize - 1);
        assert!(!span.is_long());
        span.push(1, 1);
        assert!(span.is_long());
        span.rest();
        assert!(!span.is_long());
        for offset in 0..LONG_WRITES {
            span.push(2 + offset, 1);
            span.count_write();
        }
        assert!(span.is_long());
        span.rest();
        assert!(!span.is_long());
    }
}

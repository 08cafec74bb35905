//! Acknowledged messages with their offsets, and the comparison with what is read back.

use super::message::Id;
use bench::measurement::Verification;

/// Marker for an unknown offset, when the broker does not return one.
const UNKNOWN_OFFSET: i64 = -1;

/// Consecutive messages of a lane with consecutive offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AckedRange {
    first: u64,
    count: u64,
    /// Offset of the first message, or [`UNKNOWN_OFFSET`].
    offset: i64,
}

impl AckedRange {
    fn end(&self) -> u64 {
        self.first + self.count
    }

    fn end_offset(&self) -> i64 {
        match self.offset {
            UNKNOWN_OFFSET => UNKNOWN_OFFSET,
            offset => offset.saturating_add_unsigned(self.count),
        }
    }

    fn offset_of(&self, number: u64) -> i64 {
        match self.offset {
            UNKNOWN_OFFSET => UNKNOWN_OFFSET,
            offset => offset.saturating_add_unsigned(number - self.first),
        }
    }
}

/// All acknowledged messages, by lane.
#[derive(Debug, Default)]
pub(super) struct AckedMessages {
    lanes: Vec<Vec<AckedRange>>,
}

impl AckedMessages {
    /// Adds acknowledged messages of a lane from number `first` on, with the offset of the first.
    /// The calls come in the order of the numbers.
    pub(super) fn note(&mut self, lane: u32, first: u64, count: u64, offset: i64) {
        let lane = lane as usize;
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, Vec::new);
        }
        let runs = &mut self.lanes[lane];
        match runs.last_mut() {
            Some(last) if last.end() == first && last.end_offset() == offset => last.count += count,
            _ => runs.push(AckedRange {
                first,
                count,
                offset,
            }),
        }
    }

    fn range_of(&self, id: Id) -> Option<AckedRange> {
        let runs = self.lanes.get(id.lane as usize)?;
        let at = runs.partition_point(|run| run.end() <= id.number);
        runs.get(at).copied().filter(|run| run.first <= id.number)
    }

    /// Returns the number of messages.
    pub(super) fn count(&self) -> u64 {
        self.lanes.iter().flatten().map(|run| run.count).sum()
    }
}

/// Messages read back so far.
#[derive(Debug)]
pub(super) struct ReadBack<'a> {
    acked: &'a AckedMessages,
    /// Bit set of the numbers found, by lane.
    seen: Vec<Vec<u64>>,
    acked_seen: u64,
    verified: Verification,
}

impl<'a> ReadBack<'a> {
    /// Makes an empty set.
    pub(super) fn of(acked: &'a AckedMessages) -> Self {
        Self {
            acked,
            seen: Vec::new(),
            acked_seen: 0,
            verified: Verification::default(),
        }
    }

    /// Adds a message read at `offset`. `numbers` returns how many numbers a lane has assigned.
    pub(super) fn message(&mut self, id: Id, offset: i64, numbers: impl Fn(u32) -> Option<u64>) {
        let Some(count) = numbers(id.lane).filter(|count| id.number < *count) else {
            // This message was never sent.
            self.verified.damaged += 1;
            return;
        };
        self.verified.found += 1;
        let lane = id.lane as usize;
        if self.seen.len() <= lane {
            self.seen.resize_with(lane + 1, Vec::new);
        }
        let seen = &mut self.seen[lane];
        seen.resize(count.div_ceil(64) as usize, 0);
        let (word, bit) = ((id.number / 64) as usize, 1 << (id.number % 64));
        if seen[word] & bit != 0 {
            self.verified.duplicated += 1;
            return;
        }
        seen[word] |= bit;
        if let Some(range) = self.acked.range_of(id) {
            self.acked_seen += 1;
            let acked_offset = range.offset_of(id.number);
            self.verified.moved +=
                u64::from(acked_offset != UNKNOWN_OFFSET && acked_offset != offset);
        }
    }

    /// Counts a damaged batch.
    pub(super) fn damaged(&mut self) {
        self.verified.damaged += 1;
    }

    /// Returns the result when everything has been read.
    pub(super) fn end(self) -> Verification {
        let acked = self.acked.count();
        Verification {
            acked,
            lost: acked - self.acked_seen,
            ..self.verified
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(acked: &AckedMessages, messages: &[(u64, i64)]) -> Verification {
        let mut found = ReadBack::of(acked);
        for &(number, offset) in messages {
            found.message(Id { lane: 1, number }, offset, |lane| {
                (lane == 1).then_some(100)
            });
        }
        found.end()
    }

    /// Messages 0 to 4 from offset 10 on, messages 8 and 9 at 15 and 16.
    fn acked() -> AckedMessages {
        let mut acked = AckedMessages::default();
        acked.note(1, 0, 2, 10);
        acked.note(1, 2, 3, 12);
        acked.note(1, 8, 2, 15);
        acked
    }

    #[test]
    fn consecutive_messages_are_stored_as_one_range() {
        assert_eq!(acked().lanes[1].len(), 2);
        assert_eq!(acked().count(), 7);
    }

    #[test]
    fn messages_at_their_acked_offsets_are_clean_and_unacked_ones_too() {
        let messages = [
            (0, 10),
            (1, 11),
            (2, 12),
            (3, 13),
            (4, 14),
            (8, 15),
            (9, 16),
            (5, 17),
        ];
        let verified = read(&acked(), &messages);
        assert!(verified.is_clean(), "{verified:?}");
        assert_eq!((verified.acked, verified.found), (7, 8));
    }

    #[test]
    fn lost_duplicated_moved_and_foreign_messages_are_counted() {
        let messages = [(0, 10), (0, 11), (2, 12), (3, 14), (4, 13), (100, 20)];
        let verified = read(&acked(), &messages);
        let expected = Verification {
            acked: 7,
            found: 5,
            lost: 3,
            duplicated: 1,
            moved: 2,
            damaged: 1,
        };
        assert_eq!(verified, expected);
        assert!(!verified.is_clean());
    }

    #[test]
    fn messages_without_acked_offsets_may_have_any_offset() {
        let mut acked = AckedMessages::default();
        acked.note(1, 0, 3, UNKNOWN_OFFSET);
        acked.note(1, 3, 1, UNKNOWN_OFFSET);
        assert_eq!(acked.lanes[1].len(), 1);
        let verified = read(&acked, &[(0, 7), (1, 3), (2, 9), (3, 1)]);
        assert!(verified.is_clean(), "{verified:?}");
    }
}

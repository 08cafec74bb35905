//! Knowledge of a writer about its conversation, and the comparison with what is read back.

use std::collections::BTreeMap;
use std::ops::Range;

use super::KillReport;
use crate::kill::Comparison;
use bench_storage::store::client::{AppendAck, OutgoingMessage, StoredMessage};
use bench_storage::store::message;

/// Knowledge of a writer.
#[derive(Debug)]
pub(super) struct WriterState {
    writer: u32,
    size: usize,
    /// Number of the next message.
    next: u64,
    /// Acknowledged messages: sequence to number.
    acked: BTreeMap<u64, u64>,
    /// Batch in flight, or in flight when the node was killed.
    pub(super) under_way: Option<Range<u64>>,
    /// Last acknowledged batch with its acknowledgement.
    pub(super) last: Option<(Range<u64>, AppendAck)>,
    reused: u64,
    pub(super) refused: u64,
}

impl WriterState {
    pub(super) fn new(writer: u32, size: usize) -> Self {
        Self {
            writer,
            size,
            next: 1,
            acked: BTreeMap::new(),
            under_way: None,
            last: None,
            reused: 0,
            refused: 0,
        }
    }

    /// Assigns the next numbers to a batch that is now in flight.
    pub(super) fn begin(&mut self, count: u64) -> Range<u64> {
        let numbers = self.next..self.next + count;
        self.next = numbers.end;
        self.under_way = Some(numbers.clone());
        numbers
    }

    /// Records the acknowledgement of the batch in flight.
    pub(super) fn acknowledged(&mut self, numbers: Range<u64>, acked: AppendAck) {
        for (seq, number) in (acked.first_seq..).zip(numbers.clone()) {
            let before = self.acked.insert(seq, number);
            self.reused += u64::from(before.is_some_and(|before| before != number));
        }
        self.under_way = None;
        self.last = Some((numbers, acked));
    }

    /// Returns the messages of a batch, always the same for the same numbers.
    pub(super) fn messages(&self, numbers: Range<u64>) -> Vec<OutgoingMessage> {
        let of = |number| OutgoingMessage {
            id: format!("m-{number}"),
            text: self.text(number),
        };
        numbers.map(of).collect()
    }

    fn text(&self, number: u64) -> String {
        let head = format!("{} {number} ", self.writer);
        let rest = self.size.saturating_sub(head.len());
        head + &message::text(rest, (number % 1_000) as u32)
    }

    /// Returns the number of a message, if its content is exactly what this writer wrote.
    fn number_of(&self, stored: &StoredMessage) -> Option<u64> {
        let number: u64 = stored.id.strip_prefix("m-")?.parse().ok()?;
        (number < self.next && stored.text == self.text(number)).then_some(number)
    }

    /// Compares the messages, in reading order, with the acknowledged ones.
    pub(super) fn judge(&self, found: &[StoredMessage], report: &mut KillReport) {
        report.acked += self.acked.len() as u64;
        report.refused += self.refused;
        let mut last_seq = 0;
        for stored in found {
            report.gaps += u64::from(stored.seq != last_seq + 1);
            last_seq = stored.seq;
        }
        let numbered = found
            .iter()
            .map(|stored| (stored.seq, self.number_of(stored)));
        let compared = Comparison::of(&self.acked, numbered);
        report.violations += compared.violations;
        report.violations.reused += self.reused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kill::Violations;

    fn known() -> WriterState {
        let mut known = WriterState::new(3, 64);
        for first_seq in [1, 3] {
            let numbers = known.begin(2);
            let acked = AppendAck {
                first_seq,
                last_seq: first_seq + 1,
                deduplicated: 0,
            };
            known.acknowledged(numbers, acked);
        }
        known.begin(1);
        known
    }

    fn stored(known: &WriterState, seqs_and_numbers: &[(u64, u64)]) -> Vec<StoredMessage> {
        let of = |&(seq, number): &(u64, u64)| StoredMessage {
            seq,
            id: format!("m-{number}"),
            text: known.text(number),
        };
        seqs_and_numbers.iter().map(of).collect()
    }

    fn judged(found: &[(u64, u64)]) -> KillReport {
        let known = known();
        let mut report = KillReport::default();
        known.judge(&stored(&known, found), &mut report);
        report
    }

    const WHOLE: [(u64, u64); 4] = [(1, 1), (2, 2), (3, 3), (4, 4)];

    #[test]
    fn acknowledged_records_are_clean_with_or_without_unconfirmed_ones() {
        assert!(judged(&WHOLE).is_clean());
        assert!(judged(&[&WHOLE[..], &[(5, 5)]].concat()).is_clean());
    }

    #[test]
    fn every_kind_of_error_is_counted() {
        let none = || KillReport {
            acked: 4,
            ..KillReport::default()
        };
        let lost = judged(&WHOLE[..3]);
        let clean = Violations::default;
        let violated = |violations| KillReport {
            violations,
            ..none()
        };
        assert_eq!(lost, violated(Violations { lost: 1, ..clean() }));
        let twice = judged(&[&WHOLE[..], &[(5, 4)]].concat());
        assert_eq!(
            twice,
            violated(Violations {
                duplicated: 1,
                ..clean()
            })
        );
        let gap = judged(&[&WHOLE[..], &[(6, 5)]].concat());
        assert_eq!(gap, KillReport { gaps: 1, ..none() });
        let swapped = judged(&[(1, 1), (2, 3), (3, 2), (4, 4)]);
        assert_eq!(
            swapped,
            violated(Violations {
                reordered: 1,
                reused: 2,
                ..clean()
            })
        );
        let foreign = judged(&[&WHOLE[..], &[(5, 77)]].concat());
        assert_eq!(
            foreign,
            violated(Violations {
                foreign: 1,
                ..clean()
            })
        );
        for wrong in [&WHOLE[..3], &[(1, 2)][..]] {
            assert!(!judged(wrong).is_clean());
        }
        assert!(!KillReport::default().is_clean(), "nothing was shown");
    }

    #[test]
    fn a_number_that_is_acknowledged_for_two_messages_is_reused() {
        let mut known = known();
        known.acknowledged(
            5..6,
            AppendAck {
                first_seq: 4,
                last_seq: 4,
                deduplicated: 0,
            },
        );
        assert_eq!(known.reused, 1);
        // The same message under the same sequence number is a retry.
        known.acknowledged(
            5..6,
            AppendAck {
                first_seq: 4,
                last_seq: 4,
                deduplicated: 1,
            },
        );
        assert_eq!(known.reused, 1);
    }

    #[test]
    fn a_message_is_recognised_only_as_it_was_written() {
        let known = known();
        let mut one = stored(&known, &[(1, 1)]).remove(0);
        assert_eq!((known.number_of(&one), one.text.len()), (Some(1), 64));
        one.text.replace_range(40..41, "#");
        assert_eq!(known.number_of(&one), None);
    }
}

//! The answer to a TAKE of which some outcomes are known later.
//!
//! Known outcomes are in the answer already; each missing one is a gap, and gaps are filled in any
//! order.

use std::ops::Range;
use std::task::Waker;
use std::time::Duration;

use platform::Durable;
use quota_service::{Attempt, Desk, WaitingTake};
use wire::Correlation;

use super::answer::Answer;

/// The position of a gap: the number of outcome bytes before it, and the number of gaps before it.
type Gap = (usize, usize);

/// An answer with gaps.
pub(super) struct Frame {
    pub(super) answer: Answer,
    gaps: Vec<(Gap, WaitingTake)>,
    /// The outcomes for gaps: ranges of bytes after those that were known at first.
    filled: Vec<(Gap, Range<usize>)>,
    /// The number of bytes that were known at first.
    known: usize,
    /// The record that has to be durable before the answer.
    pub(super) durable: Option<Durable>,
}

impl Frame {
    /// Creates an answer from the outcomes that are known at first.
    pub(super) fn new(
        answer: Answer,
        durable: Option<Durable>,
        asked: Vec<(usize, WaitingTake)>,
    ) -> Self {
        let known = answer.outcomes.len();
        let gaps = asked.into_iter().enumerate();
        let gaps = gaps.map(|(number, (at, parked))| ((at, number), parked));
        Self {
            answer,
            gaps: gaps.collect(),
            filled: Vec::new(),
            known,
            durable,
        }
    }

    /// Returns the number of missing outcomes.
    pub(super) fn gap_count(&self) -> usize {
        self.gaps.len()
    }

    /// Fills the gaps whose outcomes are known. If any is missing, returns when to poll again.
    pub(super) fn poll(&mut self, desk: &mut Desk, waker: &Waker) -> Option<Duration> {
        let mut pause: Option<Duration> = None;
        let gaps = std::mem::take(&mut self.gaps);
        for (gap, mut parked) in gaps {
            match parked.poll(desk, waker) {
                Attempt::Wait(lasting) => {
                    pause = Some(pause.map_or(lasting, |known| known.min(lasting)));
                    self.gaps.push((gap, parked));
                }
                Attempt::Done(taken) => {
                    let from = self.answer.outcomes.len();
                    self.answer.put(desk, &taken);
                    self.filled.push((gap, from..self.answer.outcomes.len()));
                    // All of them are written to one shard of the journal, in order: the newest
                    // becomes durable last.
                    self.durable = taken.durable.or(self.durable.take());
                }
            }
        }
        pause
    }

    /// Encodes the frame from all outcomes.
    pub(super) fn finish(&mut self, at: Correlation) {
        if !self.filled.is_empty() {
            self.filled.sort_by_key(|(gap, _)| *gap);
            let all = std::mem::take(&mut self.answer.outcomes);
            let mut from = 0;
            for ((at, _), filling) in self.filled.drain(..) {
                self.answer.outcomes.extend_from_slice(&all[from..at]);
                self.answer.outcomes.extend_from_slice(&all[filling]);
                from = at;
            }
            let rest = &all[from..self.known];
            self.answer.outcomes.extend_from_slice(rest);
        }
        self.answer.finish(at);
    }
}

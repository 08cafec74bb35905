//! The answer to a TAKE of which something is decided later.
//!
//! What is known stands in the answer already; where something is missing there is a gap, which is
//! filled in any order.

use std::ops::Range;
use std::task::Waker;
use std::time::Duration;

use node::quotas::{Attempt, Desk, Durable, Parked};
use wire::Correlation;

use super::answer::Answer;

/// Behind how many bytes of outcomes it is, and behind how many gaps.
type Gap = (usize, usize);

/// See the module's documentation.
pub(super) struct Frame {
    pub(super) answer: Answer,
    gaps: Vec<(Gap, Parked)>,
    /// What fills gaps: bytes behind those that were known at first.
    filled: Vec<(Gap, Range<usize>)>,
    /// Bytes that were known at first.
    known: usize,
    /// What has to be on disk before it is told.
    pub(super) durable: Option<Durable>,
}

impl Frame {
    /// What was known at first.
    pub(super) fn new(
        answer: Answer,
        durable: Option<Durable>,
        asked: Vec<(usize, Parked)>,
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

    /// How much is missing.
    pub(super) fn gap_count(&self) -> usize {
        self.gaps.len()
    }

    /// Fills what can be; says when to look again, if anything is missing then.
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
                    // All of them go to one shard of the journal, in order: the newest is durable
                    // last.
                    self.durable = taken.durable.or(self.durable.take());
                }
            }
        }
        pause
    }

    /// Makes the frame of what is whole.
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

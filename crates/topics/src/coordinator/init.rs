//! InitProducerId: a producer acquires a `transactional.id`.

use std::collections::BTreeSet;

use super::transaction::NOT_STARTED;
use super::{Coordinator, Denied, State, Transaction};
use crate::ids::{NO_EPOCH, ProducerId};

/// The identity that a producer expects to have when it continues after an error (KIP-360).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The producer id.
    pub producer: ProducerId,
    /// The producer epoch.
    pub epoch: i16,
}

/// The identity that the producer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The producer id.
    pub producer: ProducerId,
    /// The producer epoch.
    pub epoch: i16,
}

/// The decision on the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// To be written, applied, and answered with its producer id and epoch when it is durable.
    Write(Transaction),
    /// A retry of a finished request; to be answered when that is durable.
    Already(Answer),
    /// To be written and applied, and answered with CONCURRENT_TRANSACTIONS when it is durable: the
    /// transaction of the previous producer is aborted first.
    Abort(Transaction),
}

/// The highest epoch that a producer gets: the next one is reserved for fencing.
const EPOCH_MAX: i16 = i16::MAX - 1;

impl Coordinator {
    /// Assigns a `transactional.id` to a producer and fences the previous one. `fresh` is an unused
    /// producer id, for when one is needed.
    pub fn init(
        &self,
        name: &str,
        timeout_ms: i32,
        expected: Option<Expected>,
        fresh: ProducerId,
        now_ms: i64,
    ) -> Result<Init, Denied> {
        if name.is_empty() {
            return Err(Denied::NoName);
        }
        let max = self.bounds.timeout_ms_max;
        if timeout_ms <= 0 || timeout_ms > max {
            return Err(Denied::Timeout { timeout_ms, max });
        }
        let Some(transaction) = self.transactions.get(name) else {
            let max = self.bounds.transactions_max;
            if self.transactions.len() >= max {
                return Err(Denied::Transactions { max });
            }
            return Ok(Init::Write(Transaction {
                name: name.to_owned(),
                producer: fresh,
                epoch: 0,
                last_producer: None,
                last_epoch: NO_EPOCH,
                timeout_ms,
                state: State::Empty,
                participants: BTreeSet::new(),
                started_ms: NOT_STARTED,
                updated_ms: now_ms,
            }));
        };
        if expected.is_some_and(|expected| !transaction.may_be(expected)) {
            return Err(Denied::Fenced);
        }
        match transaction.state {
            State::PrepareCommit | State::PrepareAbort => Err(Denied::Concurrent),
            State::Ongoing => match expected {
                Some(expected) if expected.epoch != transaction.epoch => Err(Denied::Fenced),
                _ => Ok(Init::Abort(transaction.fenced(now_ms))),
            },
            State::Empty | State::CompleteCommit | State::CompleteAbort => {
                let empty = Transaction {
                    timeout_ms,
                    state: State::Empty,
                    participants: BTreeSet::new(),
                    started_ms: NOT_STARTED,
                    updated_ms: now_ms,
                    ..transaction.clone()
                };
                empty.next(expected, fresh)
            }
        }
    }
}

impl Transaction {
    /// Returns whether a producer with this expected identity may own the `transactional.id`.
    fn may_be(&self, expected: Expected) -> bool {
        let was = self.last_producer == Some(expected.producer) && expected.epoch >= EPOCH_MAX;
        expected.producer == self.producer || was
    }

    fn next(self, expected: Option<Expected>, fresh: ProducerId) -> Result<Init, Denied> {
        let (producer, epoch) = (self.producer, self.epoch);
        let is_expected = expected.is_none_or(|it| it.producer == producer && it.epoch == epoch);
        let last_epoch = expected.map_or(NO_EPOCH, |it| it.epoch);
        match expected {
            _ if is_expected && epoch >= EPOCH_MAX => Ok(Init::Write(Self {
                producer: fresh,
                epoch: 0,
                last_producer: Some(producer),
                last_epoch,
                ..self
            })),
            _ if is_expected => Ok(Init::Write(Self {
                epoch: epoch + 1,
                last_epoch,
                ..self
            })),
            // It was not fenced since: fencing clears the last epoch.
            Some(expected) if expected.epoch == self.last_epoch => {
                Ok(Init::Already(Answer { producer, epoch }))
            }
            _ => Err(Denied::Fenced),
        }
    }
}

//! A producer takes a `transactional.id`: InitProducerId.

use std::collections::BTreeSet;

use super::transaction::NOT_STARTED;
use super::{Coordinator, Denied, State, Transaction};
use crate::ids::{NO_EPOCH, ProducerId};

/// What a producer that goes on after an error believes to be (KIP-360).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Who.
    pub producer: ProducerId,
    /// In which epoch.
    pub epoch: i16,
}

/// Who the producer is from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Who.
    pub producer: ProducerId,
    /// In which epoch.
    pub epoch: i16,
}

/// What becomes of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// To be written, taken, and answered with its producer and epoch when it is durable.
    Write(Transaction),
    /// A retry of what was done; to be answered when that is durable.
    Already(Answer),
    /// To be written and taken, and answered with CONCURRENT_TRANSACTIONS when it is durable: the
    /// transaction of the producer before is aborted first.
    Abort(Transaction),
}

/// The highest epoch but one is not given away: it is left for fencing.
const EPOCH_MAX: i16 = i16::MAX - 1;

impl Coordinator {
    /// Gives a `transactional.id` to a producer, and fences whoever had it. `fresh` is an id that
    /// nobody has, for when one is needed.
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
    /// Whether somebody who believes to be that may be whoever has the name.
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
            // Nobody fenced it since: that would have cleared the last epoch.
            Some(expected) if expected.epoch == self.last_epoch => {
                Ok(Init::Already(Answer { producer, epoch }))
            }
            _ => Err(Denied::Fenced),
        }
    }
}

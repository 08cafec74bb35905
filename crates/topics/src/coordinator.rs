//! The transaction coordinator: the state of the transaction of each `transactional.id`.
//!
//! ```text
//!                      ┌────────────── InitProducerId ◂──────────────┐
//!                      ▾                                             │
//!  InitProducerId ─▸ Empty ─ partitions ─▸ Ongoing ─ EndTxn ─▸ PrepareCommit ─▸ CompleteCommit
//!                                             │  └── EndTxn ─▸ PrepareAbort  ─▸ CompleteAbort
//!                                             └─ timeout, InitProducerId ─▴        │
//!                                             ▴──────────── partitions ────────────┘
//! ```
//!
//! A transition is a new value of the [`Transaction`]. It is written and then applied
//! ([`Coordinator::put`]), under one lock; the client gets its answer when it is durable. When a
//! *prepare* is durable, markers are written to all participants; when those are durable,
//! [`Coordinator::complete`] ends it. Kafka's `PrepareEpochFence` is a step between decision and
//! write that is not needed here, and its `Dead` is a missing transaction. The protocol is that of
//! KIP-98 with the fencing of KIP-360 and the check of KIP-890 ([`Coordinator::verify`]).
//!
//! Invariants: *two producers with one `transactional.id` never both have a valid epoch; a prepared
//! transaction ends as it was prepared.*

mod init;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};

pub use init::{Answer, Expected, Init};
pub use transaction::{Participant, State, Transaction};

use crate::ids::ProducerId;
use crate::partition::Ending;

/// The limits of a coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The number of `transactional.id`s.
    pub transactions_max: usize,
    /// The number of participants of a transaction.
    pub participants_max: usize,
    /// The longest transaction timeout, in milliseconds.
    pub timeout_ms_max: i32,
}

impl Default for Bounds {
    /// Kafka's default of `transaction.max.timeout.ms`; the other limits are ours.
    fn default() -> Self {
        Self {
            transactions_max: 100_000,
            participants_max: 10_000,
            timeout_ms_max: 15 * 60 * 1000,
        }
    }
}

/// The reason why a request is refused, with Kafka's error for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// INVALID_REQUEST.
    #[error("the transactional id is empty")]
    NoName,
    /// INVALID_TRANSACTION_TIMEOUT.
    #[error("a transaction timeout of {timeout_ms} ms is not between 1 and {max} ms")]
    Timeout {
        /// The requested timeout.
        timeout_ms: i32,
        /// The limit.
        max: i32,
    },
    /// INVALID_PRODUCER_ID_MAPPING.
    #[error("the transactional id is unknown, or belongs to another producer id")]
    Mapping,
    /// PRODUCER_FENCED, or INVALID_PRODUCER_EPOCH for requests of older versions.
    #[error("a newer producer uses the transactional id")]
    Fenced,
    /// CONCURRENT_TRANSACTIONS: try again.
    #[error("the previous transaction is still being ended")]
    Concurrent,
    /// INVALID_TXN_STATE.
    #[error("the transaction is {}", .0.as_str())]
    State(State),
    /// COORDINATOR_NOT_AVAILABLE: try again.
    #[error("too many transactional ids (limit {max})")]
    Transactions {
        /// The limit.
        max: usize,
    },
    /// INVALID_REQUEST.
    #[error("too many participants in a transaction (limit {max})")]
    Participants {
        /// The limit.
        max: usize,
    },
}

/// The decision on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing changes; to be answered when everything written before is durable.
    Already,
    /// To be written, applied, and answered when it is durable.
    Write(Transaction),
}

/// The transaction and producer that a request claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The `transactional.id`.
    pub name: &'a str,
    /// The producer id.
    pub producer: ProducerId,
    /// The producer epoch.
    pub epoch: i16,
}

/// All transactions of this coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinator {
    bounds: Bounds,
    transactions: BTreeMap<String, Transaction>,
}

impl Coordinator {
    /// Returns a coordinator without transactions.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            transactions: BTreeMap::new(),
        }
    }

    /// Adds or replaces a transaction as it was written.
    pub fn put(&mut self, transaction: Transaction) {
        self.transactions
            .insert(transaction.name.clone(), transaction);
    }

    /// Removes a transaction.
    pub fn remove(&mut self, name: &str) {
        self.transactions.remove(name);
    }

    /// Returns the transaction of this name.
    pub fn get(&self, name: &str) -> Option<&Transaction> {
        self.transactions.get(name)
    }

    /// Returns all transactions, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Transaction> {
        self.transactions.values()
    }

    /// Adds participants: AddPartitionsToTxn, AddOffsetsToTxn.
    pub fn add(
        &self,
        claim: &Claim<'_>,
        participants: &[Participant],
        now_ms: i64,
    ) -> Result<Step, Denied> {
        let transaction = self.claimed(claim)?;
        if transaction.state.ending().is_some() {
            return Err(Denied::Concurrent);
        }
        let is_ongoing = transaction.state == State::Ongoing;
        let mut all = match is_ongoing {
            true => transaction.participants.clone(),
            false => BTreeSet::new(),
        };
        let before = all.len();
        all.extend(participants.iter().cloned());
        if is_ongoing && all.len() == before {
            return Ok(Step::Already);
        }
        let max = self.bounds.participants_max;
        if all.len() > max {
            return Err(Denied::Participants { max });
        }
        Ok(Step::Write(Transaction {
            state: State::Ongoing,
            participants: all,
            started_ms: match is_ongoing {
                true => transaction.started_ms,
                false => now_ms,
            },
            updated_ms: now_ms,
            ..transaction.clone()
        }))
    }

    /// Checks that a participant was added to the transaction. Records that are written for a
    /// transaction which does not include their partition would never be committed or aborted.
    pub fn verify(&self, claim: &Claim<'_>, participant: &Participant) -> Result<(), Denied> {
        let transaction = self.claimed(claim)?;
        match transaction.state {
            state if state.ending().is_some() => Err(Denied::Concurrent),
            State::Ongoing if transaction.participants.contains(participant) => Ok(()),
            state => Err(Denied::State(state)),
        }
    }

    /// Ends a transaction as its producer asks: EndTxn.
    pub fn end(&self, claim: &Claim<'_>, ending: Ending, now_ms: i64) -> Result<Step, Denied> {
        let transaction = self.claimed(claim)?;
        let state = transaction.state;
        match (state, ending) {
            (State::Ongoing, _) => Ok(Step::Write(transaction.prepared(ending, now_ms))),
            (State::CompleteCommit, Ending::Commit) | (State::CompleteAbort, Ending::Abort) => {
                Ok(Step::Already)
            }
            (State::PrepareCommit, Ending::Commit) | (State::PrepareAbort, Ending::Abort) => {
                Err(Denied::Concurrent)
            }
            _ => Err(Denied::State(state)),
        }
    }

    /// Completes a prepared transaction whose markers are all durable. Returns `None` if it is not
    /// prepared in this epoch.
    pub fn complete(&self, name: &str, epoch: i16, now_ms: i64) -> Option<Transaction> {
        let transaction = self.transactions.get(name)?;
        let ending = transaction.state.ending()?;
        (transaction.epoch == epoch).then(|| transaction.completed(ending, now_ms))
    }

    /// Returns the prepared transactions: markers are still to be written for them, also after a
    /// restart.
    pub fn prepared(&self) -> impl Iterator<Item = (&Transaction, Ending)> {
        let all = self.transactions.values();
        all.filter_map(|it| Some((it, it.state.ending()?)))
    }

    /// Returns the transactions that exceed their timeout, prepared to be aborted in an epoch that
    /// fences their producers. `age_ms` returns how long a transaction has been open, by a
    /// monotonic clock.
    pub fn overdue(
        &self,
        now_ms: i64,
        age_ms: impl Fn(&Transaction) -> i64,
    ) -> impl Iterator<Item = Transaction> {
        let overdue = self
            .ongoing()
            .filter(move |it| age_ms(it) >= i64::from(it.timeout_ms));
        overdue.map(move |it| it.fenced(now_ms))
    }

    /// Returns the transactions that are open.
    pub fn ongoing(&self) -> impl Iterator<Item = &Transaction> {
        let all = self.transactions.values();
        all.filter(|it| it.state == State::Ongoing)
    }

    /// Returns the names that have been unused for `unused_ms` and have no open transaction.
    pub fn expired(&self, now_ms: i64, unused_ms: i64) -> impl Iterator<Item = &str> {
        let all = self.transactions.values();
        let unused = all.filter(move |it| {
            it.state.is_idle() && now_ms.saturating_sub(it.updated_ms) >= unused_ms
        });
        unused.map(|it| it.name.as_str())
    }

    fn claimed(&self, claim: &Claim<'_>) -> Result<&Transaction, Denied> {
        if claim.name.is_empty() {
            return Err(Denied::NoName);
        }
        let transaction = self.transactions.get(claim.name).ok_or(Denied::Mapping)?;
        if transaction.producer != claim.producer {
            return Err(Denied::Mapping);
        }
        if transaction.epoch != claim.epoch {
            return Err(Denied::Fenced);
        }
        Ok(transaction)
    }
}

#[cfg(test)]
mod tests;

//! The transaction coordinator: whose transaction is how far, for each `transactional.id`.
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
//! A transition is a new value of the [`Transaction`], which is written and then taken
//! ([`Coordinator::put`]), under one lock; it is answered when it is durable. When a *prepare* is
//! durable, markers are written into all participants; when those are, [`Coordinator::complete`] it.
//! Kafka's `PrepareEpochFence` is a step between decision and write that is not needed here, and its
//! `Dead` is the absence of the transaction. The protocol is that of KIP-98 with the fencing of
//! KIP-360 and the check of KIP-890 ([`Coordinator::verify`]).
//!
//! Invariants: *two producers with one `transactional.id` never both have an epoch that is taken; a
//! prepared transaction ends as it was prepared.*

mod init;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};

pub use init::{Answer, Expected, Init};
pub use transaction::{Participant, State, Transaction};

use crate::ids::ProducerId;
use crate::partition::Ending;

/// What a coordinator takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// `transactional.id`s.
    pub transactions_max: usize,
    /// Participants of a transaction.
    pub participants_max: usize,
    /// Milliseconds that a transaction may ask for.
    pub timeout_ms_max: i32,
}

impl Default for Bounds {
    /// Kafka's `transaction.max.timeout.ms`; the rest is ours.
    fn default() -> Self {
        Self {
            transactions_max: 100_000,
            participants_max: 10_000,
            timeout_ms_max: 15 * 60 * 1000,
        }
    }
}

/// Why something is refused, with the error that Kafka has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// INVALID_REQUEST.
    #[error("a transactional id is not empty")]
    NoName,
    /// INVALID_TRANSACTION_TIMEOUT.
    #[error("a transaction may take up to {max} ms, not {timeout_ms}")]
    Timeout {
        /// What was asked for.
        timeout_ms: i32,
        /// The limit.
        max: i32,
    },
    /// INVALID_PRODUCER_ID_MAPPING.
    #[error("the transactional id is not known, or not with this producer")]
    Mapping,
    /// PRODUCER_FENCED, or INVALID_PRODUCER_EPOCH for those who do not know that yet.
    #[error("another producer has the transactional id now")]
    Fenced,
    /// CONCURRENT_TRANSACTIONS: try again.
    #[error("the transaction before is being ended")]
    Concurrent,
    /// INVALID_TXN_STATE.
    #[error("the transaction is {}", .0.as_str())]
    State(State),
    /// COORDINATOR_NOT_AVAILABLE: try again.
    #[error("more than {max} transactional ids")]
    Transactions {
        /// The limit.
        max: usize,
    },
    /// INVALID_REQUEST.
    #[error("more than {max} participants of a transaction")]
    Participants {
        /// The limit.
        max: usize,
    },
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is so already; to be answered when all that was written before is durable.
    Already,
    /// To be written, taken, and answered when it is durable.
    Write(Transaction),
}

/// Somebody who says that a transaction is theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The `transactional.id`.
    pub name: &'a str,
    /// Who.
    pub producer: ProducerId,
    /// In which epoch.
    pub epoch: i16,
}

/// All transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinator {
    bounds: Bounds,
    transactions: BTreeMap<String, Transaction>,
}

impl Coordinator {
    /// One without transactions.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            transactions: BTreeMap::new(),
        }
    }

    /// Takes a transaction as it was written.
    pub fn put(&mut self, transaction: Transaction) {
        self.transactions
            .insert(transaction.name.clone(), transaction);
    }

    /// Takes that there is no such transaction any more.
    pub fn remove(&mut self, name: &str) {
        self.transactions.remove(name);
    }

    /// The transaction of that name.
    pub fn get(&self, name: &str) -> Option<&Transaction> {
        self.transactions.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Transaction> {
        self.transactions.values()
    }

    /// More participants: AddPartitionsToTxn, AddOffsetsToTxn.
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

    /// Whether a participant was added to the transaction: what a partition is asked to write for a
    /// transaction that knows nothing of it would never end.
    pub fn verify(&self, claim: &Claim<'_>, participant: &Participant) -> Result<(), Denied> {
        let transaction = self.claimed(claim)?;
        match transaction.state {
            state if state.ending().is_some() => Err(Denied::Concurrent),
            State::Ongoing if transaction.participants.contains(participant) => Ok(()),
            state => Err(Denied::State(state)),
        }
    }

    /// The end that its producer wants: EndTxn.
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

    /// The end of a prepared transaction whose markers are all durable. `None` if it is not prepared
    /// in that epoch.
    pub fn complete(&self, name: &str, epoch: i16, now_ms: i64) -> Option<Transaction> {
        let transaction = self.transactions.get(name)?;
        let ending = transaction.state.ending()?;
        (transaction.epoch == epoch).then(|| transaction.completed(ending, now_ms))
    }

    /// Transactions that are prepared: markers are to be written for them, after a start too.
    pub fn prepared(&self) -> impl Iterator<Item = (&Transaction, Ending)> {
        let all = self.transactions.values();
        all.filter_map(|it| Some((it, it.state.ending()?)))
    }

    /// Transactions that take too long: prepared to be aborted, in an epoch that their producers do
    /// not have. `age_ms` is how long a transaction has been going on, by a clock that never steps.
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

    /// Transactions that are neither over nor being ended.
    pub fn ongoing(&self) -> impl Iterator<Item = &Transaction> {
        let all = self.transactions.values();
        all.filter(|it| it.state == State::Ongoing)
    }

    /// Names that were not used for `unused_ms` and are in no transaction.
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

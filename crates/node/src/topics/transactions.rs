//! Producers that are known again, and their transactions.

use std::sync::Arc;

use ::topics::{Answer, Claim, Ending, Expected, ProducerId, Transaction};

use super::Topics;
use super::error::{ProduceError, Storage, TransactionError};
use super::pending::Pending;
use super::state::Topic;

/// A producer asks for its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitProducer<'a> {
    /// Its `transactional.id`, if it has one.
    pub name: Option<&'a str>,
    /// How long its transactions take at most, in milliseconds.
    pub timeout_ms: i32,
    /// Who it believes to be, if it goes on after an error.
    pub expected: Option<Expected>,
}

/// A marker as another coordinator would write it (WriteTxnMarkers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkerToWrite {
    /// Whose transaction.
    pub producer: ProducerId,
    /// In which epoch.
    pub epoch: i16,
    /// Of the coordinator.
    pub coordinator_epoch: i32,
    /// How it ends.
    pub ending: Ending,
}

impl Topics {
    /// Who the producer is from now on; whoever had its `transactional.id` before is fenced. While a
    /// transaction of the one before is being aborted it is [`::topics::Denied::Concurrent`].
    pub fn init_producer(
        &self,
        init: &InitProducer<'_>,
    ) -> Pending<Result<Answer, TransactionError>> {
        unbuilt(init)
    }

    /// Adds partitions to a transaction (AddPartitionsToTxn); all or none.
    pub fn add_partitions(
        &self,
        claim: &Claim<'_>,
        partitions: &[(Arc<Topic>, u32)],
    ) -> Pending<Result<(), TransactionError>> {
        unbuilt((claim, partitions))
    }

    /// Whether a partition was added to a transaction (AddPartitionsToTxn with `verify_only`).
    pub fn verify_partition(
        &self,
        claim: &Claim<'_>,
        topic: &Topic,
        partition: u32,
    ) -> Result<(), TransactionError> {
        let _ = (claim, topic, partition);
        Err(not_served().into())
    }

    /// Adds the offsets of a group to a transaction (AddOffsetsToTxn).
    pub fn add_group(
        &self,
        claim: &Claim<'_>,
        group: &str,
    ) -> Pending<Result<(), TransactionError>> {
        unbuilt((claim, group))
    }

    /// Ends a transaction; answered when that is for good and its producer may begin the next.
    pub fn end_transaction(
        &self,
        claim: &Claim<'_>,
        ending: Ending,
    ) -> Pending<Result<(), TransactionError>> {
        unbuilt((claim, ending))
    }

    /// Writes a marker into a partition.
    pub fn write_marker(
        &self,
        topic: &Topic,
        partition: u32,
        marker: &MarkerToWrite,
    ) -> Pending<Result<(), ProduceError>> {
        let _ = (topic, partition, marker);
        Pending::now(Err(not_served().into()))
    }

    /// All transactions, by name; participants are topics by id.
    pub fn transactions(&self) -> Vec<Transaction> {
        Vec::new()
    }

    /// The transaction of that name.
    pub fn transaction(&self, name: &str) -> Option<Transaction> {
        let _ = name;
        None
    }
}

fn not_served() -> Storage {
    let reason = "transactions are not served yet".to_owned();
    Storage::Failed { reason }
}

fn unbuilt<T>(_: impl Sized) -> Pending<Result<T, TransactionError>> {
    Pending::now(Err(not_served().into()))
}

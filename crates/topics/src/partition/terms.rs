//! What a partition is told and what it answers.

use crate::ids::ProducerId;

/// What a partition is not larger than.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Producers that are remembered; of more, those without a transaction that were silent for the
    /// longest time are forgotten.
    pub producers_max: usize,
    /// Entries of the index; with more, each stands for twice the bytes.
    pub blocks_max: usize,
    /// Bytes that an entry of the index stands for at first.
    pub block_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            producers_max: 100_000,
            blocks_max: 1024,
            block_bytes: 64 << 10,
        }
    }
}

/// Facts of a batch of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Offsets that it takes, at least one.
    pub offsets: u32,
    /// Bytes.
    pub size: u32,
    /// The highest timestamp in it, in milliseconds since 1970-01-01 UTC; -1 for none.
    pub timestamp_max: i64,
    /// The timestamp that those of its records are relative to: the first record's; -1 for none. Its age
    /// counts from the later of the two, since the maximum of a compressed batch is what the producer
    /// says it is.
    pub timestamp_base: i64,
    /// Who produced it, if it is to be known again.
    pub producer: Option<Sequenced>,
    /// Whether it belongs to its producer's transaction.
    pub is_transactional: bool,
}

/// A batch's place in what its producer produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequenced {
    /// Who.
    pub id: ProducerId,
    /// From 0.
    pub epoch: i16,
    /// Of the first record, from 0.
    pub sequence: i32,
}

/// Facts of a batch that ends a transaction. It takes one offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Whose.
    pub id: ProducerId,
    /// In which epoch.
    pub epoch: i16,
    /// How.
    pub ending: Ending,
    /// Of the coordinator that ended it.
    pub coordinator_epoch: i32,
    /// Bytes.
    pub size: u32,
    /// When.
    pub timestamp: i64,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It counts.
    Commit,
    /// It never happened.
    Abort,
}

/// Where a batch was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of its first record.
    pub offset: u64,
    /// Of the batch in the partition's stream, which counts batches.
    pub record: u64,
    /// The time, in milliseconds since 1970-01-01 UTC.
    pub now_ms: i64,
}

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is written; its first record gets this offset.
    Append {
        /// The end of the partition.
        offset: u64,
    },
    /// It was written before. To be answered when the partition is durable up to `end`.
    Duplicate {
        /// Of its first record.
        offset: u64,
        /// Behind its last record.
        end: u64,
        /// What it was stamped with.
        timestamp: i64,
    },
}

/// Why a batch is not written, with the error that Kafka has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// OUT_OF_ORDER_SEQUENCE_NUMBER.
    #[error("sequence {sequence} of producer {} does not follow {last}", id.0)]
    OutOfOrder {
        /// Who.
        id: ProducerId,
        /// Of the batch.
        sequence: i32,
        /// The newest that is known in its epoch; -1 for none.
        last: i32,
    },
    /// INVALID_PRODUCER_EPOCH.
    #[error("epoch {epoch} of producer {} is over, it is at {current}", id.0)]
    Epoch {
        /// Who.
        id: ProducerId,
        /// Of the batch.
        epoch: i16,
        /// The newest that is known.
        current: i16,
    },
    /// INVALID_TXN_STATE.
    #[error("producer {} is in a transaction and the batch is not", id.0)]
    Outside {
        /// Who.
        id: ProducerId,
    },
    /// TRANSACTION_COORDINATOR_FENCED.
    #[error("coordinator epoch {epoch} is over, it is at {current}")]
    Coordinator {
        /// Of the marker.
        epoch: i32,
        /// The newest that is known.
        current: i32,
    },
}

/// A small change of a partition that is no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing before this offset is there any more.
    LogStart(u64),
    /// Another leader, and the end of the partition when it began.
    Leader {
        /// Counted by whoever elects.
        epoch: i32,
        /// Where it begins.
        start: u64,
    },
    /// Everything before this offset was compacted: of each key only the newest record is left, and
    /// nothing that was aborted.
    Cleaned(u64),
}

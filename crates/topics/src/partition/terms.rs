//! Inputs and outputs of a partition.

use crate::ids::ProducerId;

/// The size limits of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of producers that are remembered. Beyond it, those without a transaction that
    /// were silent for longest are forgotten.
    pub producers_max: usize,
    /// The number of index entries. Beyond it, each entry covers twice as many bytes.
    pub blocks_max: usize,
    /// The number of bytes that an index entry covers at first.
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

/// The facts of a batch of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of its offsets, at least one.
    pub offsets: u32,
    /// Its size in bytes.
    pub size: u32,
    /// Its highest timestamp, in milliseconds since 1970-01-01 UTC; -1 for none.
    pub timestamp_max: i64,
    /// The timestamp of its first record, to which the others are relative; -1 for none. The age of
    /// the batch counts from the later of the two, since the maximum of a compressed batch is only
    /// what the producer states.
    pub timestamp_base: i64,
    /// The producer, if the batch is idempotent.
    pub producer: Option<Sequenced>,
    /// True if it belongs to its producer's transaction.
    pub is_transactional: bool,
}

/// The producer and sequence of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequenced {
    /// The producer id.
    pub id: ProducerId,
    /// The producer epoch, from 0.
    pub epoch: i16,
    /// The sequence of the first record, from 0.
    pub sequence: i32,
}

/// The facts of a batch that ends a transaction (a control batch). It takes one offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The producer id.
    pub id: ProducerId,
    /// The producer epoch.
    pub epoch: i16,
    /// The end of the transaction: commit or abort.
    pub ending: Ending,
    /// The epoch of the coordinator that ended it.
    pub coordinator_epoch: i32,
    /// Its size in bytes.
    pub size: u32,
    /// Its timestamp, in milliseconds since 1970-01-01 UTC.
    pub timestamp: i64,
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its records become visible to `read_committed`.
    Commit,
    /// Its records are skipped by `read_committed`.
    Abort,
}

/// The position at which a batch was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPosition {
    /// The offset of its first record.
    pub offset: u64,
    /// The number of the batch in the partition's stream.
    pub record: u64,
    /// The time of the append, in milliseconds since 1970-01-01 UTC.
    pub now_ms: i64,
}

/// The decision on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The batch is written; its first record gets this offset.
    Append {
        /// The end of the partition.
        offset: u64,
    },
    /// The batch was written before. To be answered when the partition is durable up to `end`.
    Duplicate {
        /// The offset of its first record.
        offset: u64,
        /// The offset after its last record.
        end: u64,
        /// The timestamp that it was given.
        timestamp: i64,
    },
}

/// The reason why a batch is not written, with Kafka's error for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// OUT_OF_ORDER_SEQUENCE_NUMBER.
    #[error("sequence {sequence} of producer {} does not follow {last}", id.0)]
    OutOfOrder {
        /// The producer id.
        id: ProducerId,
        /// The sequence of the batch.
        sequence: i32,
        /// The newest known sequence in the epoch; -1 for none.
        last: i32,
    },
    /// INVALID_PRODUCER_EPOCH.
    #[error("epoch {epoch} of producer {} is fenced by epoch {current}", id.0)]
    Epoch {
        /// The producer id.
        id: ProducerId,
        /// The epoch of the batch.
        epoch: i16,
        /// The newest known epoch.
        current: i16,
    },
    /// INVALID_TXN_STATE.
    #[error("producer {} has an open transaction, but the batch is not transactional", id.0)]
    Outside {
        /// The producer id.
        id: ProducerId,
    },
    /// TRANSACTION_COORDINATOR_FENCED.
    #[error("coordinator epoch {epoch} is fenced by epoch {current}")]
    Coordinator {
        /// The epoch of the marker.
        epoch: i32,
        /// The newest known epoch.
        current: i32,
    },
}

/// A change of a partition other than a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The log start: no record before this offset exists any more.
    LogStart(u64),
    /// A new leader epoch, and the end of the partition when it began.
    Leader {
        /// The epoch, counted by the election.
        epoch: i32,
        /// The first offset of the epoch.
        start: u64,
    },
    /// Everything before this offset was compacted: only the newest record of each key is left, and
    /// nothing that was aborted.
    Cleaned(u64),
}

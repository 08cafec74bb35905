//! Why something is not done, each with the error that Kafka has for it.

use ::topics::groups::Refused;
use ::topics::{Denied, OutOfRange, Refusal, TopicError, UserError};
use journal::{AppendError, Health, Journal, ReadError};
use recordbatch::{BadRecord, Malformed, Rejected};

use super::events::ReadOnly;
use crate::ports::offload::Overloaded;

/// What is kept cannot be written or read now. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Storage {
    /// REQUEST_TIMED_OUT to whoever writes, who waits for room before
    /// ([`poll_room`](super::Topics::poll_room)); KAFKA_STORAGE_ERROR to whoever reads; in groups and
    /// transactions COORDINATOR_NOT_AVAILABLE. Clients try again after all of them.
    #[error("too much waits for the disk")]
    Busy,
    /// KAFKA_STORAGE_ERROR, or COORDINATOR_NOT_AVAILABLE: clients try again.
    #[error("the disk is full")]
    DiskFull,
    /// As `DiskFull`, until the node is started again.
    #[error("the journal has failed: {reason}")]
    Failed {
        /// For people.
        reason: String,
    },
    /// MESSAGE_TOO_LARGE.
    #[error("{size} bytes are more than the {limit} that fit into the journal")]
    TooLarge {
        /// Bytes it would have.
        size: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// KAFKA_STORAGE_ERROR: damaged, or the disk did not read.
    #[error("{reason}")]
    Unreadable {
        /// For people.
        reason: String,
    },
}

impl Storage {
    pub(super) fn append(journal: &Journal, error: AppendError) -> Self {
        match error {
            AppendError::TooLarge { size, limit } => Self::TooLarge { size, limit },
            AppendError::Full => Self::Busy,
            AppendError::DiskFull => Self::DiskFull,
            AppendError::Conflict { .. } | AppendError::Failed => Self::Failed {
                reason: match journal.health() {
                    Health::Failed { reason } => reason,
                    _ => error.to_string(),
                },
            },
        }
    }

    pub(super) fn read(error: &ReadError) -> Self {
        Self::unreadable(error)
    }

    pub(super) fn unreadable(error: impl std::fmt::Display) -> Self {
        Self::Unreadable {
            reason: error.to_string(),
        }
    }
}

impl From<Overloaded> for Storage {
    fn from(_: Overloaded) -> Self {
        Self::Busy
    }
}

/// UNKNOWN_TOPIC_OR_PARTITION: the topic has no such partition, or is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such partition")]
pub struct UnknownPartition;

/// Why a batch is not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProduceError {
    /// UNKNOWN_TOPIC_OR_PARTITION.
    #[error(transparent)]
    Unknown(#[from] UnknownPartition),
    /// CORRUPT_MESSAGE; INVALID_RECORD for [`Malformed::Torn`] and formats before 2.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// See [`ReadOnly`].
    #[error(transparent)]
    ReadOnly(#[from] ReadOnly),
    /// INVALID_RECORD.
    #[error("a partition is sent one record batch at a time, and nothing behind it")]
    NotOne,
    /// See [`Rejected`].
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// INVALID_RECORD, of a topic that is compacted.
    #[error(transparent)]
    Record(#[from] BadRecord),
    /// INVALID_RECORD, of a topic that is compacted.
    #[error(
        "{} of the batch without a key, and the topic is compacted",
        records(indexes)
    )]
    NoKey {
        /// The records without a key, from 0.
        indexes: Vec<i32>,
    },
    /// See [`Refusal`].
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The batch is of a transaction that does not know of the partition; see [`Denied`]. What is
    /// [`Denied::Fenced`] is INVALID_PRODUCER_EPOCH here.
    #[error(transparent)]
    Transaction(#[from] Denied),
    /// See [`Storage`].
    #[error(transparent)]
    Storage(#[from] Storage),
}

/// The first of some records, for a message.
fn records(indexes: &[i32]) -> String {
    const SHOWN_MAX: usize = 3;
    let shown: Vec<_> = indexes.iter().take(SHOWN_MAX).map(i32::to_string).collect();
    match indexes.len() {
        1 => format!("record {}", shown.join(", ")),
        2..=SHOWN_MAX => format!("records {}", shown.join(", ")),
        count => format!("{count} records ({}, ...)", shown.join(", ")),
    }
}

/// Why records are not handed out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// UNKNOWN_TOPIC_OR_PARTITION.
    #[error(transparent)]
    Unknown(#[from] UnknownPartition),
    /// OFFSET_OUT_OF_RANGE.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// See [`ReadOnly`].
    #[error(transparent)]
    ReadOnly(#[from] ReadOnly),
    /// FENCED_LEADER_EPOCH.
    #[error("leader epoch {asked} is over, it is at {current}")]
    Fenced {
        /// What the reader knows.
        asked: i32,
        /// What it is.
        current: i32,
    },
    /// UNKNOWN_LEADER_EPOCH.
    #[error("leader epoch {asked} has not come, it is at {current}")]
    Ahead {
        /// What the reader knows.
        asked: i32,
        /// What it is.
        current: i32,
    },
    /// See [`Storage`].
    #[error(transparent)]
    Storage(#[from] Storage),
}

/// Why a topic is not made, changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// See [`TopicError`].
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// POLICY_VIOLATION.
    #[error(
        "too many partitions of topics, those of deleted topics included (limit {limit}, \
         `namespace.names_max`)"
    )]
    Names {
        /// How many there may be.
        limit: usize,
    },
    /// See [`ReadOnly`].
    #[error(transparent)]
    ReadOnly(#[from] ReadOnly),
    /// See [`Storage`].
    #[error(transparent)]
    Storage(#[from] Storage),
}

/// Why a user is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserChangeError {
    /// See [`UserError`].
    #[error(transparent)]
    User(#[from] UserError),
    /// See [`Storage`].
    #[error(transparent)]
    Storage(#[from] Storage),
}

/// Why a producer or a transaction does not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// See [`Denied`].
    #[error(transparent)]
    Denied(#[from] Denied),
    /// UNKNOWN_TOPIC_OR_PARTITION.
    #[error(transparent)]
    Unknown(#[from] UnknownPartition),
    /// See [`Storage`]; COORDINATOR_NOT_AVAILABLE.
    #[error(transparent)]
    Storage(#[from] Storage),
}

/// Why a group does not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// See [`Refused`].
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The transaction is not that producer's, or does not know of the group; see [`Denied`].
    #[error(transparent)]
    Transaction(#[from] Denied),
    /// See [`Storage`]; COORDINATOR_NOT_AVAILABLE.
    #[error(transparent)]
    Storage(#[from] Storage),
}

//! Errors of topics, each with the Kafka error that it maps to.

use journal::{AppendError, Health, Journal, ReadError};
use platform::{NotDurable, Overloaded};
use recordbatch::{BadRecord, Malformed, Rejected};
use topics::groups::Refused;
use topics::{Denied, OutOfRange, Refusal, TopicError, UserError};

/// Storage cannot be written or read now. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Storage {
    /// Too many writes wait for the disk. Producers wait for room
    /// ([`poll_room`](super::Topics::poll_room)) and then get REQUEST_TIMED_OUT; readers get
    /// KAFKA_STORAGE_ERROR; groups and transactions get COORDINATOR_NOT_AVAILABLE. Clients retry
    /// after all of them.
    #[error("too much waits for the disk")]
    Busy,
    /// The disk is full. KAFKA_STORAGE_ERROR or COORDINATOR_NOT_AVAILABLE: clients retry.
    #[error("the disk is full")]
    DiskFull,
    /// The journal has failed. Same Kafka errors as `DiskFull`, until the node is restarted.
    #[error("the journal has failed: {reason}")]
    Failed {
        /// The reason, for people.
        reason: String,
    },
    /// NOT_LEADER_OR_FOLLOWER or NOT_COORDINATOR: another node leads the partition or group.
    #[error("{}", NotDurable::Moved)]
    Moved,
    /// MESSAGE_TOO_LARGE: the entry does not fit into the journal.
    #[error("{size} bytes are more than the {limit} that fit into the journal")]
    TooLarge {
        /// Size of the entry, in bytes.
        size: usize,
        /// Maximum size of an entry, in bytes.
        limit: usize,
    },
    /// KAFKA_STORAGE_ERROR: the data is damaged, or the disk read failed.
    #[error("{reason}")]
    Unreadable {
        /// The reason, for people.
        reason: String,
    },
}

impl Storage {
    pub(super) fn append(journal: &Journal, error: AppendError) -> Self {
        match error {
            AppendError::TooLarge { size, limit } => Self::TooLarge { size, limit },
            AppendError::Full => Self::Busy,
            AppendError::DiskFull => Self::DiskFull,
            AppendError::Moved => Self::Moved,
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

/// UNKNOWN_TOPIC_OR_PARTITION: the topic has no such partition, or was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such partition")]
pub struct UnknownPartition;

/// A batch was not appended, or may not have been.
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
    /// INVALID_RECORD: the request holds more or less than one record batch for a partition.
    #[error("a partition is sent one record batch at a time, and nothing behind it")]
    NotOne,
    /// See [`Rejected`].
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// INVALID_RECORD: a record of a compacted topic is malformed.
    #[error(transparent)]
    Record(#[from] BadRecord),
    /// INVALID_RECORD: records of a compacted topic have no key.
    #[error(
        "{} of the batch without a key, and the topic is compacted",
        records(indexes)
    )]
    NoKey {
        /// Indexes of the records without a key, from 0.
        indexes: Vec<i32>,
    },
    /// See [`Refusal`].
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The batch belongs to a transaction that the partition was not added to; see [`Denied`].
    /// [`Denied::Fenced`] maps to INVALID_PRODUCER_EPOCH here.
    #[error(transparent)]
    Transaction(#[from] Denied),
    /// See [`Storage`].
    #[error(transparent)]
    Storage(#[from] Storage),
    /// The outcome is unknown: the journal failed before the batch was on disk.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
}

/// Formats the first few indexes for an error message.
fn records(indexes: &[i32]) -> String {
    const SHOWN_MAX: usize = 3;
    let shown: Vec<_> = indexes.iter().take(SHOWN_MAX).map(i32::to_string).collect();
    match indexes.len() {
        1 => format!("record {}", shown.join(", ")),
        2..=SHOWN_MAX => format!("records {}", shown.join(", ")),
        count => format!("{count} records ({}, ...)", shown.join(", ")),
    }
}

/// Records were not returned to a reader, or not deleted.
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
    /// FENCED_LEADER_EPOCH: the reader's epoch is older than the current one.
    #[error("leader epoch {asked} is over, it is at {current}")]
    Fenced {
        /// The reader's leader epoch.
        asked: i32,
        /// The current leader epoch.
        current: i32,
    },
    /// UNKNOWN_LEADER_EPOCH: the reader's epoch is newer than the current one.
    #[error("leader epoch {asked} has not come, it is at {current}")]
    Ahead {
        /// The reader's leader epoch.
        asked: i32,
        /// The current leader epoch.
        current: i32,
    },
    /// See [`Storage`].
    #[error(transparent)]
    Storage(#[from] Storage),
    /// The outcome is unknown: the journal failed before the deletion of records was on disk.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
}

/// A topic was not created, changed or deleted, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// See [`TopicError`].
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// POLICY_VIOLATION: the limit on partitions that were ever created is reached.
    #[error(
        "too many partitions of topics, those of deleted topics included (limit {limit}, \
         `namespace.names_max`)"
    )]
    Names {
        /// The maximum number of partitions.
        limit: usize,
    },
    /// See [`ReadOnly`].
    #[error(transparent)]
    ReadOnly(#[from] ReadOnly),
    /// See [`Storage`].
    #[error(transparent)]
    Storage(#[from] Storage),
    /// The outcome is unknown: the journal failed before the change was on disk.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
}

/// A user was not changed, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserChangeError {
    /// See [`UserError`].
    #[error(transparent)]
    User(#[from] UserError),
    /// See [`Storage`].
    #[error(transparent)]
    Storage(#[from] Storage),
    /// The outcome is unknown: the journal failed before the change was on disk.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
}

/// A request of a producer or a transaction failed.
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
    /// The outcome is unknown: the journal failed before the change was on disk.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
}

/// A request of a consumer group failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// See [`Refused`].
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The transaction belongs to another producer, or the group was not added to it; see
    /// [`Denied`].
    #[error(transparent)]
    Transaction(#[from] Denied),
    /// See [`Storage`]; COORDINATOR_NOT_AVAILABLE.
    #[error(transparent)]
    Storage(#[from] Storage),
    /// The outcome is unknown: the journal failed before the change was on disk.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
}

/// The stored topics cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A read failed.
    #[error("the stored topics cannot be read: {0}")]
    Read(#[from] ReadError),
    /// A stored record is malformed.
    #[error("the stored topics are invalid: {0}")]
    Malformed(#[from] topics::record::Malformed),
    /// The streams of topics cannot be created.
    #[error("topics cannot be kept: {0}")]
    Append(#[from] AppendError),
}

/// INVALID_TOPIC_EXCEPTION: the topic is read-only, and its name is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the topic ORG.NAMESPACE.conversations has the events of conversations and can only be read"
)]
pub struct ReadOnly;

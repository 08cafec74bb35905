//! Kafka error codes: one exhaustive match for each error type of the node.
//!
//! Source of the numbers: <https://kafka.apache.org/protocol#protocol_error_codes>; the node's
//! error types document which one a broker returns.

use std::fmt;

use kafka::ErrorCode;
use platform::NotDurable;
use recordbatch::{Malformed, Rejected};
use topic_service::{
    AdminError, FetchError, GroupError, ProduceError, ReadOnly, Storage, TransactionError,
    UserChangeError,
};
use topics::groups::Refused;
use topics::{Denied, Refusal, TopicError, UserError};

/// An error with a Kafka error code.
pub(super) trait Coded: fmt::Display {
    /// The code of an outcome that is not known in time; clients retry, too.
    const LATE: ErrorCode;

    /// Returns its code.
    fn code(&self) -> ErrorCode;
}

/// An error code and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl Failed {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl<E: Coded> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Returns the code of a result; `None` (0) if there is no error.
pub(super) fn code_of<T>(told: &Result<T, Failed>) -> ErrorCode {
    told.as_ref().err().map_or(ErrorCode::None, |it| it.code)
}

/// The code of a partition leader's storage error. Consumers do not know REQUEST_TIMED_OUT;
/// producers do, and retry without looking for another leader: see [`of_written`].
fn of_storage(storage: &Storage) -> ErrorCode {
    match storage {
        Storage::Busy | Storage::DiskFull | Storage::Failed { .. } | Storage::Unreadable { .. } => {
            ErrorCode::KafkaStorageError
        }
        Storage::TooLarge { .. } => ErrorCode::MessageTooLarge,
        Storage::Moved => ErrorCode::NotLeaderOrFollower,
    }
}

/// The code of a storage error for a producer.
fn of_written(storage: &Storage) -> ErrorCode {
    match storage {
        Storage::Busy => ErrorCode::RequestTimedOut,
        other => of_storage(other),
    }
}

/// The code of a storage error of topic and user administration.
fn of_administration(storage: &Storage) -> ErrorCode {
    match storage {
        Storage::Moved => ErrorCode::NotController,
        other => of_written(other),
    }
}

/// The code of an outcome that is not durable: `unknown` if it may be stored, after which clients
/// retry, or `moved`, after which they look for the leader.
fn of_not_durable(error: NotDurable, unknown: ErrorCode, moved: ErrorCode) -> ErrorCode {
    match error {
        NotDurable::Failed | NotDurable::Cut => unknown,
        NotDurable::Moved => moved,
    }
}

/// The code of a write or a deletion of records that is not durable.
pub(super) fn of_not_durable_records(error: NotDurable) -> ErrorCode {
    let moved = ErrorCode::NotLeaderOrFollower;
    of_not_durable(error, ErrorCode::KafkaStorageError, moved)
}

/// The code of an administrative change that is not durable.
fn of_not_durable_change(error: NotDurable) -> ErrorCode {
    of_not_durable(error, ErrorCode::RequestTimedOut, ErrorCode::NotController)
}

/// The code of a coordinator's decision that is not durable.
pub(super) fn of_not_durable_decision(error: NotDurable) -> ErrorCode {
    let unknown = ErrorCode::CoordinatorNotAvailable;
    of_not_durable(error, unknown, ErrorCode::NotCoordinator)
}

/// The code of a coordinator's storage error.
fn of_coordinator_storage(storage: &Storage) -> ErrorCode {
    match storage {
        Storage::Busy | Storage::DiskFull | Storage::Failed { .. } | Storage::Unreadable { .. } => {
            ErrorCode::CoordinatorNotAvailable
        }
        Storage::TooLarge { .. } => ErrorCode::InvalidRequest,
        Storage::Moved => ErrorCode::NotCoordinator,
    }
}

/// The code of a transaction coordinator's error.
pub(super) fn of_denied(denied: &Denied) -> ErrorCode {
    match denied {
        Denied::NoName | Denied::Participants { .. } => ErrorCode::InvalidRequest,
        Denied::Timeout { .. } => ErrorCode::InvalidTransactionTimeout,
        Denied::Mapping => ErrorCode::InvalidProducerIdMapping,
        Denied::Fenced => ErrorCode::ProducerFenced,
        Denied::Concurrent => ErrorCode::ConcurrentTransactions,
        Denied::State(_) => ErrorCode::InvalidTxnState,
        Denied::Transactions { .. } => ErrorCode::CoordinatorNotAvailable,
    }
}

fn of_rejected(rejected: &Rejected) -> ErrorCode {
    match rejected {
        Rejected::Size { .. } | Rejected::Unpacked { .. } => ErrorCode::MessageTooLarge,
        Rejected::Checksum => ErrorCode::CorruptMessage,
        Rejected::Compression { .. } => ErrorCode::UnsupportedCompressionType,
        Rejected::Timestamp { .. }
        | Rejected::Ahead { .. }
        | Rejected::Behind { .. }
        | Rejected::AppendTime => ErrorCode::InvalidTimestamp,
        Rejected::Attributes { .. }
        | Rejected::BaseOffset { .. }
        | Rejected::Count { .. }
        | Rejected::Producer { .. } => ErrorCode::InvalidRecord,
    }
}

fn of_refusal(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::OutOfOrder { .. } => ErrorCode::OutOfOrderSequenceNumber,
        Refusal::Epoch { .. } => ErrorCode::InvalidProducerEpoch,
        Refusal::Outside { .. } => ErrorCode::InvalidTxnState,
        Refusal::Coordinator { .. } => ErrorCode::TransactionCoordinatorFenced,
    }
}

pub(super) fn of_refused(refused: &Refused) -> ErrorCode {
    match refused {
        Refused::InvalidGroupId { .. } => ErrorCode::InvalidGroupId,
        Refused::InvalidSessionTimeout { .. } => ErrorCode::InvalidSessionTimeout,
        Refused::InconsistentProtocol => ErrorCode::InconsistentGroupProtocol,
        Refused::MemberIdRequired { .. } => ErrorCode::MemberIdRequired,
        Refused::UnknownMember => ErrorCode::UnknownMemberId,
        Refused::FencedInstance => ErrorCode::FencedInstanceId,
        Refused::IllegalGeneration { .. } => ErrorCode::IllegalGeneration,
        Refused::RebalanceInProgress => ErrorCode::RebalanceInProgress,
        Refused::MembersMax { .. } => ErrorCode::GroupMaxSizeReached,
        Refused::GroupsMax { .. } => ErrorCode::PolicyViolation,
        Refused::TooLarge { .. } => ErrorCode::InvalidRequest,
        Refused::MetadataTooLarge { .. } => ErrorCode::OffsetMetadataTooLarge,
        Refused::OffsetsMax { .. } => ErrorCode::InvalidCommitOffsetSize,
        Refused::GroupNotFound => ErrorCode::GroupIdNotFound,
        Refused::NonEmpty => ErrorCode::NonEmptyGroup,
        Refused::Subscribed => ErrorCode::GroupSubscribedToTopic,
    }
}

impl Coded for ProduceError {
    const LATE: ErrorCode = ErrorCode::RequestTimedOut;

    fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown(_) => ErrorCode::UnknownTopicOrPartition,
            // Older formats, and a batch that is cut off, are invalid records.
            Self::Malformed(Malformed::Magic { magic: 0 | 1 } | Malformed::Torn { .. })
            | Self::NotOne
            | Self::Record(_)
            | Self::NoKey { .. } => ErrorCode::InvalidRecord,
            Self::Malformed(Malformed::Magic { .. } | Malformed::Length { .. }) => {
                ErrorCode::CorruptMessage
            }
            Self::ReadOnly(ReadOnly) => ErrorCode::InvalidTopicException,
            Self::Rejected(rejected) => of_rejected(rejected),
            Self::Refused(refusal) => of_refusal(refusal),
            // Producers handle this code where they do not know PRODUCER_FENCED.
            Self::Transaction(Denied::Fenced) => ErrorCode::InvalidProducerEpoch,
            Self::Transaction(denied) => of_denied(denied),
            Self::Storage(storage) => of_written(storage),
            Self::NotDurable(error) => of_not_durable_records(*error),
        }
    }
}

impl Coded for FetchError {
    const LATE: ErrorCode = ErrorCode::RequestTimedOut;

    fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown(_) => ErrorCode::UnknownTopicOrPartition,
            Self::OutOfRange(_) => ErrorCode::OffsetOutOfRange,
            Self::ReadOnly(ReadOnly) => ErrorCode::InvalidTopicException,
            Self::Fenced { .. } => ErrorCode::FencedLeaderEpoch,
            Self::Ahead { .. } => ErrorCode::UnknownLeaderEpoch,
            Self::Storage(storage) => of_storage(storage),
            Self::NotDurable(error) => of_not_durable_records(*error),
        }
    }
}

impl Coded for AdminError {
    const LATE: ErrorCode = ErrorCode::RequestTimedOut;

    fn code(&self) -> ErrorCode {
        match self {
            Self::Topic(TopicError::Name(_) | TopicError::Collision { .. }) => {
                ErrorCode::InvalidTopicException
            }
            Self::ReadOnly(ReadOnly) => ErrorCode::InvalidTopicException,
            Self::Topic(TopicError::Exists { .. }) => ErrorCode::TopicAlreadyExists,
            Self::Topic(TopicError::Unknown) => ErrorCode::UnknownTopicOrPartition,
            Self::Topic(TopicError::Partitions { .. }) => ErrorCode::InvalidPartitions,
            Self::Topic(TopicError::Room { .. }) | Self::Names { .. } => ErrorCode::PolicyViolation,
            Self::Topic(TopicError::Config(_)) => ErrorCode::InvalidConfig,
            Self::Storage(storage) => of_administration(storage),
            Self::NotDurable(error) => of_not_durable_change(*error),
        }
    }
}

impl Coded for UserChangeError {
    const LATE: ErrorCode = ErrorCode::RequestTimedOut;

    fn code(&self) -> ErrorCode {
        match self {
            Self::User(UserError::Name | UserError::Iterations { .. } | UserError::Sizes) => {
                ErrorCode::UnacceptableCredential
            }
            Self::User(UserError::Unknown) => ErrorCode::ResourceNotFound,
            Self::User(UserError::Room) => ErrorCode::PolicyViolation,
            Self::Storage(storage) => of_administration(storage),
            Self::NotDurable(error) => of_not_durable_change(*error),
        }
    }
}

impl Coded for TransactionError {
    const LATE: ErrorCode = ErrorCode::CoordinatorNotAvailable;

    fn code(&self) -> ErrorCode {
        match self {
            Self::Denied(denied) => of_denied(denied),
            Self::Unknown(_) => ErrorCode::UnknownTopicOrPartition,
            Self::Storage(storage) => of_coordinator_storage(storage),
            Self::NotDurable(error) => of_not_durable_decision(*error),
        }
    }
}

impl Coded for GroupError {
    const LATE: ErrorCode = ErrorCode::CoordinatorNotAvailable;

    fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refused) => of_refused(refused),
            Self::Transaction(denied) => of_denied(denied),
            Self::Storage(storage) => of_coordinator_storage(storage),
            Self::NotDurable(error) => of_not_durable_decision(*error),
        }
    }
}

/// Returns the code for producers of older versions, which do not know PRODUCER_FENCED (KIP-588).
pub(super) fn before_fencing(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_outcomes_let_clients_find_the_leader() {
        let [moved, unknown] = [NotDurable::Moved, NotDurable::Cut].map(|error| {
            [
                ProduceError::from(error).code(),
                FetchError::from(error).code(),
                AdminError::from(error).code(),
                UserChangeError::from(error).code(),
                TransactionError::from(error).code(),
                GroupError::from(error).code(),
            ]
        });
        let refused = [
            ProduceError::from(Storage::Moved).code(),
            FetchError::from(Storage::Moved).code(),
            AdminError::from(Storage::Moved).code(),
            UserChangeError::from(Storage::Moved).code(),
            TransactionError::from(Storage::Moved).code(),
            GroupError::from(Storage::Moved).code(),
        ];
        let expected = [
            ErrorCode::NotLeaderOrFollower,
            ErrorCode::NotLeaderOrFollower,
            ErrorCode::NotController,
            ErrorCode::NotController,
            ErrorCode::NotCoordinator,
            ErrorCode::NotCoordinator,
        ];
        assert_eq!((moved, refused), (expected, expected));
        let expected = [
            ErrorCode::KafkaStorageError,
            ErrorCode::KafkaStorageError,
            ErrorCode::RequestTimedOut,
            ErrorCode::RequestTimedOut,
            ErrorCode::CoordinatorNotAvailable,
            ErrorCode::CoordinatorNotAvailable,
        ];
        assert_eq!(unknown, expected);
    }
}

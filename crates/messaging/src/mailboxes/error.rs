//! Errors of writes to mailboxes, and of their administration.

use journal::ReadError;
use mailbox::Refused as Full;
use mailbox::record::Malformed;
use model::{ErrorCode, NameError, SYSTEM_ORG};
use platform::{NotDurable, Overloaded};
use quota_service::Throttled;
use store::StorageError;

/// Pause before retrying a write to a full mailbox, in milliseconds.
const FULL_RETRY_MS: u32 = 1_000;

/// Pause before retrying an operation for which no thread was free, in milliseconds.
const OVERLOADED_RETRY_MS: u32 = 500;

/// The reason why a message was not written to a mailbox, or may not have been.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// A limit or a halt.
    #[error(transparent)]
    Throttled(#[from] Throttled),
    /// The node has no storage.
    #[error("this node has no storage: write with durability=memory")]
    NoStorage,
    /// The name belongs to the node.
    #[error("names of `{SYSTEM_ORG}/` belong to the node itself")]
    SystemName,
    /// The route leads to one instance of a name.
    #[error(
        "a mailbox belongs to all instances of a name: write to `{base}`, or use durability=memory"
    )]
    Instance {
        /// The name without the instance.
        base: String,
    },
    /// The route leads to all subscribers.
    #[error("a write to disk needs one receiver: bind the route with cast `any`")]
    NotOneReceiver,
    /// The mailbox is full.
    #[error(transparent)]
    Full(#[from] Full),
    /// The storage refused the write, or failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The reason why an administrative request to a mailbox failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailboxError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The mailbox does not exist.
    #[error("no mailbox `{name}`: no message was ever written to that name")]
    Missing {
        /// The name.
        name: String,
    },
    /// The mailbox cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The reason why messages were not lent to a client, or why its answer to them is not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The name of the instance is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Too many clients wait for messages of the mailbox.
    #[error("too many clients wait for messages of this mailbox (limit {limit})")]
    TooManyTakers {
        /// The limit.
        limit: usize,
    },
    /// The answer took effect, but a restart of the node may undo it.
    #[error("the answer is not on disk: {reason}; the messages may be delivered again")]
    Unconfirmed {
        /// The reason.
        reason: String,
    },
    /// The mailbox cannot be used.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
}

impl LeaseError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Name(_) => ErrorCode::InvalidArgument,
            Self::TooManyTakers { .. } => ErrorCode::Busy,
            Self::Unconfirmed { .. } => ErrorCode::Unconfirmed,
            Self::Mailbox(error) => error.code(),
        }
    }
}

impl WriteError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Throttled(throttled) => throttled.code(),
            Self::Storage(error) => error.code(),
            Self::Full(_) => ErrorCode::Busy,
            Self::NoStorage => ErrorCode::Unsupported,
            Self::SystemName => ErrorCode::Denied,
            Self::Instance { .. } | Self::NotOneReceiver => ErrorCode::InvalidArgument,
        }
    }

    /// Returns the pause before a retry in milliseconds; 0 if it is not known.
    pub fn retry_after_ms(&self) -> u32 {
        match self {
            Self::Throttled(throttled) => throttled.retry_after_ms(),
            Self::Storage(StorageError::Overloaded(_)) => OVERLOADED_RETRY_MS,
            Self::Full(_) => FULL_RETRY_MS,
            Self::Storage(_)
            | Self::NoStorage
            | Self::SystemName
            | Self::Instance { .. }
            | Self::NotOneReceiver => 0,
        }
    }
}

impl MailboxError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Name(_) => ErrorCode::InvalidArgument,
            Self::Missing { .. } => ErrorCode::NotFound,
            Self::Storage(error) => error.code(),
        }
    }
}

/// The reason why a mailbox cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl From<LoadError> for StorageError {
    fn from(error: LoadError) -> Self {
        let reason = error.to_string();
        Self::Unreadable { reason }
    }
}

store::storage_errors! {
    WriteError: LoadError,
    WriteError: Overloaded,
    WriteError: NotDurable,
    MailboxError: LoadError,
}

//! Errors of the store and of raw streams.

use journal::{AppendError, Health, Journal, ReadError};
use model::{ErrorCode, NameError};
use platform::{NotDurable, Overloaded};

use crate::directory::Malformed;

/// The reason why the store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be read.
    #[error("the directory of streams cannot be read: {0}")]
    Read(#[from] ReadError),
    /// The directory has an invalid record.
    #[error("the directory of streams has an invalid record: {0}")]
    Malformed(#[from] Malformed),
    /// The directory of format 1 cannot be copied.
    #[error("the directory of streams cannot be upgraded to format 2: {0}")]
    Append(#[from] AppendError),
    /// The copy of the directory of format 1 is not durable.
    #[error("the directory of streams cannot be upgraded to format 2: {0}")]
    Upgrade(#[from] NotDurable),
}

/// The reason why the storage refused or failed an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The namespace has the maximum number of names.
    #[error("namespace `{namespace}` has too many names (limit {limit}, `namespace.names_max`)")]
    Names {
        /// The namespace.
        namespace: String,
        /// The limit.
        limit: usize,
    },
    /// A record is too large.
    #[error("{size} bytes are too large (limit {limit} bytes)")]
    TooLarge {
        /// Size in bytes.
        size: usize,
        /// Limit in bytes.
        limit: usize,
    },
    /// The stream does not end at the expected offset.
    #[error("the next offset is {next}")]
    Conflict {
        /// The next offset.
        next: u64,
    },
    /// The write queue is full.
    #[error("too many bytes wait for the disk")]
    QueueFull,
    /// The disk has no space.
    #[error("the disk is full")]
    DiskFull,
    /// The journal has failed.
    #[error("the journal has failed{}", because(.reason))]
    Failed {
        /// The reason, if it is known.
        reason: Option<String>,
    },
    /// Stored data cannot be read.
    #[error("{reason}")]
    Unreadable {
        /// The reason.
        reason: String,
    },
    /// Too many operations wait for a thread that may read from the disk.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// The operation is not acknowledged: it may or may not be stored, or another node leads.
    #[error(transparent)]
    NotDurable(#[from] NotDurable),
}

fn because(reason: &Option<String>) -> String {
    let reason = reason.as_ref();
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

impl StorageError {
    /// Returns the error of an append.
    pub fn of_append(journal: &Journal, error: AppendError) -> Self {
        match error {
            AppendError::TooLarge { size, limit } => Self::TooLarge { size, limit },
            AppendError::Conflict { next, .. } => Self::Conflict { next },
            AppendError::Full => Self::QueueFull,
            AppendError::DiskFull => Self::DiskFull,
            AppendError::Moved => NotDurable::Moved.into(),
            AppendError::Failed => Self::Failed {
                reason: match journal.health() {
                    Health::Failed { reason } => Some(reason),
                    _ => None,
                },
            },
        }
    }

    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Names { .. } => ErrorCode::Denied,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::Conflict { .. } => ErrorCode::Conflict,
            Self::QueueFull | Self::DiskFull | Self::Failed { .. } => ErrorCode::Unavailable,
            Self::Unreadable { .. } => ErrorCode::Internal,
            Self::Overloaded(Overloaded) => ErrorCode::Busy,
            Self::NotDurable(error) => error.code(),
        }
    }
}

impl From<ReadError> for StorageError {
    fn from(error: ReadError) -> Self {
        let reason = error.to_string();
        Self::Unreadable { reason }
    }
}

/// The reason why a request to a raw stream failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The node has no storage.
    #[error("this node has no storage")]
    NoStorage,
    /// The append has no records.
    #[error("the append has no records")]
    NoRecords,
    /// The stream does not end at the expected offset.
    #[error("the stream ends at {next}")]
    Conflict {
        /// The offset after the last record.
        next: u64,
    },
    /// The records were deleted.
    #[error("records before offset {start} are no longer stored")]
    Trimmed {
        /// The first stored offset.
        start: u64,
    },
    /// The node has the maximum number of followers.
    #[error("too many followers of streams on this node")]
    Followers,
    /// The storage refused the request, or failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl StreamError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoStorage => ErrorCode::Unsupported,
            Self::NoRecords | Self::Trimmed { .. } => ErrorCode::InvalidArgument,
            Self::Conflict { .. } => ErrorCode::Conflict,
            Self::Followers => ErrorCode::Busy,
            Self::Storage(error) => error.code(),
        }
    }
}

impl From<FollowError> for StreamError {
    fn from(error: FollowError) -> Self {
        match error {
            FollowError::Failed { reason } => {
                let reason = Some(reason);
                StorageError::Failed { reason }.into()
            }
            FollowError::TooMany => Self::Followers,
        }
    }
}

/// The reason why a waker was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// The journal has failed.
    #[error("the journal has failed: {reason}")]
    Failed {
        /// The reason.
        reason: String,
    },
    /// The node has the maximum number of followers.
    #[error("too many followers of streams on this node")]
    TooMany,
}

/// The reason why an administrative request to a raw stream failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamsError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The stream does not exist.
    #[error("no stream `{name}`")]
    Missing {
        /// The name.
        name: String,
    },
    /// The storage refused the request, or failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl StreamsError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Name(_) => ErrorCode::InvalidArgument,
            Self::Missing { .. } => ErrorCode::NotFound,
            Self::Storage(error) => error.code(),
        }
    }
}

/// Implements `From` for errors with a variant `Storage`, from causes that a [`StorageError`] can be
/// made of: `storage_errors! { ReadFailure: ReadError, … }`.
#[macro_export]
macro_rules! storage_errors {
    ($($error:ty: $from:ty),* $(,)?) => {$(
        impl From<$from> for $error {
            fn from(error: $from) -> Self {
                $crate::StorageError::from(error).into()
            }
        }
    )*};
}

storage_errors! {
    StreamError: ReadError,
    StreamError: Overloaded,
    StreamError: NotDurable,
    StreamsError: ReadError,
    StreamsError: NotDurable,
}

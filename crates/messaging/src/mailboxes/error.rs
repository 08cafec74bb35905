//! Errors of writes to mailboxes, and of their administration.

use journal::ReadError;
use mailbox::Refused as Full;
use mailbox::record::Malformed;
use model::{ErrorCode, NameError, SYSTEM_ORG};
use platform::{NotDurable, Overloaded};
use quota_service::Throttled;
use store::StorageError;

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

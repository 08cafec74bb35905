//! Errors of requests to views.

use conversation_service::ConversationError;
use journal::ReadError;
use model::ErrorCode;
use store::StorageError;

/// The reason why a request to the views failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewsError {
    /// The views are being opened or built, or their file cannot be used now.
    #[error("{reason}")]
    Unavailable {
        /// The reason.
        reason: String,
    },
    /// The node has the maximum number of watched inboxes.
    #[error("too many watched inboxes (limit {limit}, views.watchers_max)")]
    TooManyWatchers {
        /// The limit.
        limit: usize,
    },
    /// A request to a conversation failed.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// The journal cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ViewsError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable { .. } => ErrorCode::Unavailable,
            Self::TooManyWatchers { .. } => ErrorCode::Busy,
            Self::Conversation(error) => error.code(),
            Self::Storage(error) => error.code(),
        }
    }
}

store::storage_errors! {
    ViewsError: ReadError,
}

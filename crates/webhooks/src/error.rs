//! Errors of requests to webhooks.

use conversation_service::ConversationError;
use conversations::delivery::DeliveryError;
use conversations::record::Malformed;
use journal::ReadError;
use model::{ErrorCode, Name};
use platform::NotDurable;
use store::StorageError;

/// The reason why a request to webhooks failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// An agent cannot have the name.
    #[error("`{name}` is not a valid agent name")]
    Name {
        /// The name.
        name: Name,
    },
    /// The settings are not allowed.
    #[error("{reason}")]
    Settings {
        /// The reason.
        reason: String,
    },
    /// The node has the maximum number of agents.
    #[error("too many agents (limit {limit}, webhook.agents_max)")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The agent does not exist.
    #[error("unknown agent `{name}`")]
    Unknown {
        /// `org/namespace/agent`.
        name: String,
    },
    /// The operation on a dead letter failed.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// A request to a conversation failed.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// The storage refused the request, or failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl WebhookError {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Name { .. } | Self::Settings { .. } => ErrorCode::InvalidArgument,
            Self::TooMany { .. } => ErrorCode::TooLarge,
            Self::Unknown { .. } | Self::Delivery(DeliveryError::Missing) => ErrorCode::NotFound,
            Self::Delivery(DeliveryError::Full { .. }) => ErrorCode::Unavailable,
            Self::Delivery(DeliveryError::Busy) => ErrorCode::Busy,
            Self::Conversation(error) => error.code(),
            Self::Storage(error) => error.code(),
        }
    }
}

impl From<Malformed> for WebhookError {
    fn from(malformed: Malformed) -> Self {
        ConversationError::from(malformed).into()
    }
}

store::storage_errors! {
    WebhookError: ReadError,
    WebhookError: NotDurable,
}

//! Refusals of requests to conversations.

use journal::ReadError;
use model::ErrorCode;
use platform::{Overloaded, Unconfirmed};

use crate::store::StorageError;

/// A refusal: nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error code.
    pub code: ErrorCode,
    /// The message for people.
    pub message: String,
    /// Details for programs.
    pub details: Box<Details>,
}

/// Details of a refusal; absent where they do not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The number of the conversation's newest message.
    pub head_seq: Option<u64>,
    /// The number of the conflicting message.
    pub seq: Option<u64>,
    /// The number of the oldest available message.
    pub start_seq: Option<u64>,
    /// The index in the batch of the message concerned, from 0.
    pub index: Option<usize>,
    /// The version of the state.
    pub version: Option<u64>,
    /// The number of tokens that were needed.
    pub tokens: Option<u64>,
}

impl Refusal {
    /// Creates a refusal without details.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Box::default(),
        }
    }

    pub(crate) fn with(self, details: Details) -> Self {
        Self {
            details: Box::new(details),
            ..self
        }
    }

    /// No conversation of that name was ever stored.
    pub(crate) fn not_found(name: &str) -> Self {
        Self::new(
            ErrorCode::NotFound,
            format!("there is no conversation `{name}`"),
        )
    }

    /// The conversation was erased.
    pub(crate) fn gone() -> Self {
        Self::new(
            ErrorCode::Gone,
            "the conversation was erased; its name is not used again",
        )
    }

    /// Messages before `start_seq` are no longer stored.
    pub(crate) fn trimmed(start_seq: u64) -> Self {
        let message = format!("messages before {start_seq} are not kept any more");
        Self::new(ErrorCode::Trimmed, message).with(Details {
            start_seq: Some(start_seq),
            ..Details::default()
        })
    }

    /// The node has no storage.
    pub fn no_storage() -> Self {
        Self::new(ErrorCode::Unsupported, "this node has no storage")
    }
}

impl From<(ErrorCode, String)> for Refusal {
    fn from((code, message): (ErrorCode, String)) -> Self {
        Self::new(code, message)
    }
}

impl From<Unconfirmed> for Refusal {
    fn from(unconfirmed: Unconfirmed) -> Self {
        Self::new(ErrorCode::Unconfirmed, unconfirmed.to_string())
    }
}

impl From<Overloaded> for Refusal {
    fn from(overloaded: Overloaded) -> Self {
        Self::new(ErrorCode::Busy, overloaded.to_string())
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Self::new(ErrorCode::Internal, error.to_string())
    }
}

impl From<conversations::record::Malformed> for Refusal {
    fn from(malformed: conversations::record::Malformed) -> Self {
        Self::new(ErrorCode::Internal, malformed.to_string())
    }
}

impl From<conversations::Refusal> for Refusal {
    fn from(refused: conversations::Refusal) -> Self {
        use conversations::Refusal as Engine;
        let mut details = Details::default();
        let code = match refused {
            Engine::SeqMismatch { head, .. } => {
                details.head_seq = Some(head);
                ErrorCode::Conflict
            }
            Engine::VersionMismatch { version, .. } => {
                details.version = Some(version);
                ErrorCode::Conflict
            }
            Engine::IdReused { index, seq } => {
                details.index = Some(index);
                details.seq = Some(seq);
                ErrorCode::IdReused
            }
            Engine::IdStreamed { index } | Engine::IdRepeated { index, .. } => {
                details.index = Some(index);
                ErrorCode::IdReused
            }
            Engine::Archived | Engine::Copying | Engine::Exists => ErrorCode::Conflict,
            Engine::Gone => return Self::gone(),
            Engine::Missing => ErrorCode::NotFound,
            Engine::BeyondHead { head } => {
                details.head_seq = Some(head);
                ErrorCode::InvalidArgument
            }
            Engine::Who | Engine::Policy(_) => ErrorCode::InvalidArgument,
            Engine::Drafts { .. } => ErrorCode::Busy,
            Engine::Cursors { .. } | Engine::Size { .. } | Engine::Full => ErrorCode::TooLarge,
            Engine::Damaged { .. } => ErrorCode::Internal,
        };
        Self::new(code, refused.to_string()).with(details)
    }
}

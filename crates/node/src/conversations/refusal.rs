//! Why something about a conversation was not done.

use journal::ReadError;
use model::ErrorCode;

/// A refusal: nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind it is.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// For programs.
    pub details: Box<Details>,
}

/// What a program may want to know of a refusal; what does not concern it is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The number of the newest message.
    pub head_seq: Option<u64>,
    /// The number of the message that is in the way.
    pub seq: Option<u64>,
    /// The number of the oldest message that is kept.
    pub start_seq: Option<u64>,
    /// Which message of the batch it is about, from 0.
    pub index: Option<usize>,
    /// The version of the state.
    pub version: Option<u64>,
    /// What was needed, in tokens.
    pub tokens: Option<u64>,
}

impl Refusal {
    /// Without details.
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

    /// Nothing of that name was ever kept.
    pub(crate) fn not_found(name: &str) -> Self {
        Self::new(
            ErrorCode::NotFound,
            format!("there is no conversation `{name}`"),
        )
    }

    /// What it was has been erased.
    pub(crate) fn gone() -> Self {
        Self::new(
            ErrorCode::Gone,
            "the conversation was erased; its name is not used again",
        )
    }

    /// Older messages than these are not kept.
    pub(crate) fn trimmed(start_seq: u64) -> Self {
        let message = format!("messages before {start_seq} are not kept any more");
        Self::new(ErrorCode::Trimmed, message).with(Details {
            start_seq: Some(start_seq),
            ..Details::default()
        })
    }

    pub(crate) fn unconfirmed() -> Self {
        Self::new(ErrorCode::Unconfirmed, crate::store::UNCONFIRMED)
    }
}

impl From<(ErrorCode, String)> for Refusal {
    fn from((code, message): (ErrorCode, String)) -> Self {
        Self::new(code, message)
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

//! Errors of requests to conversations.

use conversations::context::WindowError;
use conversations::draft::Refused as ChunkError;
use conversations::{Invalid, Problem};
use journal::ReadError;
use model::{ErrorCode, SYSTEM_ORG};
use platform::{NotDurable, Overloaded};
use store::{FollowError, StorageError};

use crate::archive::ArchiveUnavailable;

/// The reason why a request to a conversation failed. Nothing was changed, unless the code is
/// [`ErrorCode::Unconfirmed`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversationError {
    /// The node has no storage.
    #[error("this node has no storage")]
    NoStorage,
    /// The name belongs to the node.
    #[error("names of `{SYSTEM_ORG}/` belong to the node itself")]
    SystemName,
    /// The name is that of an instance.
    #[error("a conversation has no instances: `{base}`")]
    Instance {
        /// The name without the instance.
        base: String,
    },
    /// No conversation of that name was ever stored.
    #[error("there is no conversation `{name}`")]
    NotFound {
        /// `org/namespace/x`.
        name: String,
    },
    /// The conversation was erased.
    #[error("the conversation was erased; its name is not used again")]
    Gone,
    /// Messages before `start_seq` are no longer stored.
    #[error("messages before {start_seq} are not kept any more")]
    Trimmed {
        /// The number of the oldest available message.
        start_seq: u64,
    },
    /// Trimmed messages cannot be read from the archive now.
    #[error("the messages from {seq} on are in the archive, which cannot be read now: {cause}")]
    Archive {
        /// The first of them.
        seq: u64,
        /// The cause.
        cause: ArchiveUnavailable,
    },
    /// A message is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The engine refused the request.
    #[error(transparent)]
    Engine(conversations::Refusal),
    /// No window can be cut.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The messages that a window is cut from are too large.
    #[error("the messages that the window is cut from are too large")]
    WindowTooLarge,
    /// A chunk of a draft is invalid.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// No message of the conversation has this id.
    #[error("the conversation has no message `{id}`")]
    NoMessage {
        /// The id.
        id: String,
    },
    /// Answers cannot be streamed to this node.
    #[error("nothing is streamed to this node")]
    NoAssembler,
    /// No draft has this message id.
    #[error("no message `{id}` is being streamed")]
    NoDraft {
        /// The id.
        id: String,
    },
    /// The draft has ended.
    #[error("the draft is over")]
    DraftOver,
    /// A copy was requested as a change.
    #[error("a copy is made by a fork")]
    CopyRequested,
    /// The conversation's agent is answering and accepts no other message meanwhile.
    #[error("`{agent}` is answering message {seq}: it wants no other")]
    AgentBusy {
        /// The agent.
        agent: String,
        /// The last message that it is answering.
        seq: u64,
    },
    /// The conversation changed during each read of its history.
    #[error("what is there changes faster than it can be read")]
    Contended,
    /// The node has the maximum number of watchers.
    #[error("{limit} watch conversations of this node, its limit")]
    TooManyWatchers {
        /// The limit.
        limit: usize,
    },
    /// The node has the maximum number of followers of streams.
    #[error("too many follow streams of this node")]
    TooManyFollowers,
    /// Stored data contradicts itself.
    #[error("{reason}")]
    Inconsistent {
        /// The reason.
        reason: String,
    },
    /// The storage refused the request, or failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A pending outcome of a request to a conversation.
pub type Pending<T> = platform::Pending<T, ConversationError>;

/// Details of an error for programs; absent where they do not apply.
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

impl ConversationError {
    /// No conversation of that name was ever stored.
    pub(crate) fn not_found(name: &str) -> Self {
        Self::NotFound {
            name: name.to_owned(),
        }
    }

    /// Stored data contradicts itself.
    pub(crate) fn inconsistent(reason: impl Into<String>) -> Self {
        Self::Inconsistent {
            reason: reason.into(),
        }
    }

    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoStorage | Self::NoAssembler => ErrorCode::Unsupported,
            Self::SystemName | Self::Instance { .. } | Self::CopyRequested => {
                ErrorCode::InvalidArgument
            }
            Self::NotFound { .. } | Self::NoDraft { .. } | Self::NoMessage { .. } => {
                ErrorCode::NotFound
            }
            Self::Gone | Self::DraftOver => ErrorCode::Gone,
            Self::Trimmed { .. } => ErrorCode::Trimmed,
            Self::Archive { .. } => ErrorCode::Unavailable,
            Self::Invalid(invalid) => invalid_code(invalid),
            Self::Engine(refusal) => engine_code(refusal),
            Self::Window(WindowError::NoBudget) => ErrorCode::InvalidArgument,
            Self::Window(WindowError::OverBudget { .. } | WindowError::FixedOverBudget { .. }) => {
                ErrorCode::OverBudget
            }
            Self::Window(WindowError::TooLong { .. }) | Self::WindowTooLarge => ErrorCode::TooLarge,
            Self::Chunk(ChunkError::Size { .. }) => ErrorCode::TooLarge,
            Self::Chunk(ChunkError::LineFeed) => ErrorCode::InvalidArgument,
            Self::AgentBusy { .. }
            | Self::Contended
            | Self::TooManyWatchers { .. }
            | Self::TooManyFollowers => ErrorCode::Busy,
            Self::Inconsistent { .. } => ErrorCode::Internal,
            Self::Storage(error) => error.code(),
        }
    }

    /// Returns the details for programs.
    pub fn details(&self) -> Details {
        let mut details = Details::default();
        match self {
            Self::Trimmed { start_seq } => details.start_seq = Some(*start_seq),
            Self::Invalid(invalid) => details.index = Some(invalid.index),
            Self::AgentBusy { seq, .. } => details.seq = Some(*seq),
            Self::Engine(refusal) => details = engine_details(refusal),
            Self::Window(WindowError::OverBudget {
                from_seq, tokens, ..
            }) => {
                details.seq = Some(*from_seq);
                details.tokens = Some(*tokens);
            }
            Self::Window(WindowError::FixedOverBudget { tokens, .. }) => {
                details.tokens = Some(*tokens);
            }
            _ => {}
        }
        details
    }
}

fn invalid_code(invalid: &Invalid) -> ErrorCode {
    match invalid.problem {
        Problem::Messages { .. }
        | Problem::BatchSize { .. }
        | Problem::Size { .. }
        | Problem::Metadata { .. }
        | Problem::Parts { .. } => ErrorCode::TooLarge,
        Problem::Empty | Problem::Id | Problem::Role | Problem::From => ErrorCode::InvalidArgument,
    }
}

fn engine_code(refusal: &conversations::Refusal) -> ErrorCode {
    use conversations::Refusal as Engine;
    match refusal {
        Engine::SeqMismatch { .. } | Engine::VersionMismatch { .. } => ErrorCode::Conflict,
        Engine::IdReused { .. }
        | Engine::IdRetracted { .. }
        | Engine::IdStreamed { .. }
        | Engine::IdRepeated { .. } => ErrorCode::IdReused,
        Engine::Archived | Engine::Copying | Engine::Exists => ErrorCode::Conflict,
        Engine::Gone => ErrorCode::Gone,
        Engine::Missing => ErrorCode::NotFound,
        Engine::BeyondHead { .. } | Engine::Id | Engine::Who | Engine::Policy(_) => {
            ErrorCode::InvalidArgument
        }
        Engine::Drafts { .. } => ErrorCode::Busy,
        Engine::Cursors { .. }
        | Engine::Retractions { .. }
        | Engine::Size { .. }
        | Engine::Full => ErrorCode::TooLarge,
        Engine::Damaged { .. } => ErrorCode::Internal,
    }
}

fn engine_details(refusal: &conversations::Refusal) -> Details {
    use conversations::Refusal as Engine;
    let mut details = Details::default();
    match *refusal {
        Engine::SeqMismatch { head, .. } | Engine::BeyondHead { head } => {
            details.head_seq = Some(head);
        }
        Engine::VersionMismatch { version, .. } => details.version = Some(version),
        Engine::IdReused { index, seq } | Engine::IdRetracted { index, seq } => {
            details.index = Some(index);
            details.seq = Some(seq);
        }
        Engine::IdStreamed { index } | Engine::IdRepeated { index, .. } => {
            details.index = Some(index);
        }
        _ => {}
    }
    details
}

impl From<conversations::Refusal> for ConversationError {
    fn from(refusal: conversations::Refusal) -> Self {
        match refusal {
            conversations::Refusal::Gone => Self::Gone,
            refusal => Self::Engine(refusal),
        }
    }
}

impl From<FollowError> for ConversationError {
    fn from(error: FollowError) -> Self {
        match error {
            FollowError::Failed { reason } => {
                let reason = Some(reason);
                StorageError::Failed { reason }.into()
            }
            FollowError::TooMany => Self::TooManyFollowers,
        }
    }
}

impl From<conversations::record::Malformed> for ConversationError {
    fn from(malformed: conversations::record::Malformed) -> Self {
        Self::inconsistent(malformed.to_string())
    }
}

store::storage_errors! {
    ConversationError: Overloaded,
    ConversationError: ReadError,
    ConversationError: NotDurable,
}

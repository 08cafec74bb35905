//! The assembled message, and how its author ended it.

use conversation_service::{PartFact, Status};

/// The author's ending of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorEnding {
    /// `finish`.
    Finished,
    /// `finish` after an `error`.
    Failed,
    /// `abort`.
    Aborted,
}

impl AuthorEnding {
    /// Returns the status that the message gets.
    pub fn status(self) -> Status {
        match self {
            Self::Finished => Status::Complete,
            Self::Failed | Self::Aborted => Status::Aborted,
        }
    }
}

/// An assembled message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The parts, as a JSON array.
    pub parts: String,
    /// The facts of each part.
    pub facts: Vec<PartFact>,
    /// The metadata, as a JSON object; empty if there is none. The text of an `error` chunk is its
    /// `error` field, unless the author used that name; metadata that is not an object is its
    /// `value` field.
    pub metadata: String,
}

impl From<Assembled> for conversation_service::AssembledContent {
    fn from(assembled: Assembled) -> Self {
        let metadata = assembled.metadata;
        Self {
            parts: assembled.parts.into_bytes(),
            facts: assembled.facts,
            metadata: (!metadata.is_empty()).then(|| metadata.into_bytes()),
        }
    }
}

//! The message that an assembly makes, and how its author ended it.

use node::conversations::{PartFact, Status};

/// How the author ended the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// `finish`.
    Finished,
    /// `finish` after an `error`.
    Failed,
    /// `abort`.
    Aborted,
}

impl Ended {
    /// The status of the message then.
    pub fn status(self) -> Status {
        match self {
            Self::Finished => Status::Complete,
            Self::Failed | Self::Aborted => Status::Aborted,
        }
    }
}

/// What a message is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// A JSON array.
    pub parts: String,
    /// One for each part.
    pub facts: Vec<PartFact>,
    /// A JSON object, empty if there are none. The text of an `error` chunk is its `error`, unless its
    /// author used that name; metadata that are no object are its `value`.
    pub metadata: String,
}

impl From<Assembled> for node::conversations::Assembled {
    fn from(assembled: Assembled) -> Self {
        let metadata = assembled.metadata;
        Self {
            parts: assembled.parts.into_bytes(),
            facts: assembled.facts,
            metadata: (!metadata.is_empty()).then(|| metadata.into_bytes()),
        }
    }
}

//! What is decided about a batch or a change, and why it may be refused.

use std::ops::Range;

use crate::context::PolicyProblem;
use crate::ids::MESSAGES_MAX;
use crate::limits::WHO_LENGTH_MAX;

/// What is to be done with a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Append the new messages, in order, and say [`crate::Conversation::appended`] of each.
    Append(Plan),
    /// Read these messages, then ask again: their ids may be those of the batch.
    Read(Vec<u64>),
    /// Read the ids of these messages, say [`crate::Conversation::learn`], then ask again. The range
    /// may be learned in pieces, from its end on.
    Learn(Range<u64>),
}

/// Where each message of a batch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One for each message, in order.
    pub places: Vec<Place>,
    /// The newest message when the batch is appended.
    pub head: u64,
}

impl Plan {
    /// How many were there already.
    pub fn deduplicated(&self) -> usize {
        let is_known = |place: &&Place| matches!(place, Place::Known(_));
        self.places.iter().filter(is_known).count()
    }
}

/// Where a message of a batch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is to be appended with that number.
    New(u64),
    /// It has that number already, or an equal one before it in the batch will.
    Known(u64),
}

impl Place {
    /// Its number.
    pub fn seq(self) -> u64 {
        match self {
            Self::New(seq) | Self::Known(seq) => seq,
        }
    }
}

/// Where the message of an id is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// There.
    At(u64),
    /// It is none of those that are kept.
    Nowhere,
    /// As [`Decision::Read`].
    Read(Vec<u64>),
    /// As [`Decision::Learn`].
    Learn(Range<u64>),
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The newest message is another than was expected.
    #[error("the newest message is {head}, not {expected}")]
    SeqMismatch {
        /// The newest message.
        head: u64,
        /// What was expected.
        expected: u64,
    },
    /// The state is another than was expected.
    #[error("the version is {version}, not {expected}")]
    VersionMismatch {
        /// Which it is.
        version: u64,
        /// What was expected.
        expected: u64,
    },
    /// The id is that of another message.
    #[error("message {index} has the id of message {seq}, which says something else")]
    IdReused {
        /// Which message of the batch, from 0.
        index: usize,
        /// Whose id it is.
        seq: u64,
    },
    /// Two messages of the batch have the same id and are not the same.
    #[error(
        "message {index} has the id of message {earlier} of the batch, which says something else"
    )]
    IdRepeated {
        /// Which message of the batch, from 0.
        index: usize,
        /// The message before it, from 0.
        earlier: usize,
    },
    /// The id is that of a draft that has not become a message yet.
    #[error("message {index} has the id of a draft that is being streamed")]
    IdStreamed {
        /// Which message of the batch, from 0.
        index: usize,
    },
    /// There are too many drafts.
    #[error("{max} drafts of the conversation are open, the limit")]
    Drafts {
        /// The limit.
        max: usize,
    },
    /// It takes no messages.
    #[error("the conversation is archived")]
    Archived,
    /// It is not complete yet.
    #[error("the conversation is being copied")]
    Copying,
    /// It was there and will never be again.
    #[error("the conversation was erased")]
    Gone,
    /// There is none of that name.
    #[error("the conversation does not exist")]
    Missing,
    /// There is one of that name.
    #[error("the conversation exists")]
    Exists,
    /// There is no such message.
    #[error("the newest message is {head}")]
    BeyondHead {
        /// The newest message.
        head: u64,
    },
    /// Too many participants have cursors.
    #[error("{max} participants have cursors, the limit")]
    Cursors {
        /// The limit.
        max: usize,
    },
    /// The change is larger than it may be.
    #[error("{what} of {size} bytes: the limit is {max}")]
    Size {
        /// What.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// That is no name of a participant or an agent.
    #[error("a name has 1 to {WHO_LENGTH_MAX} bytes and no control characters")]
    Who,
    /// Windows cannot be cut like that.
    #[error(transparent)]
    Policy(#[from] PolicyProblem),
    /// There is no room for as many messages, ever.
    #[error("a conversation has at most {MESSAGES_MAX} messages")]
    Full,
    /// A record that is kept cannot be read.
    #[error("message {seq} is damaged")]
    Damaged {
        /// Which one.
        seq: u64,
    },
}

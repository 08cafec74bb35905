//! Decisions about batches and changes, and the reasons for refusing them.

use std::ops::Range;

use smallvec::SmallVec;

use crate::context::PolicyProblem;
use crate::ids::MESSAGES_MAX;
use crate::limits::{ID_LENGTH_MAX, WHO_LENGTH_MAX};

/// The decision about a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Append the new messages in order and call [`crate::Conversation::appended`] for each.
    Append(Plan),
    /// Read these messages, then decide again: their ids may equal those of the batch.
    Read(Vec<u64>),
    /// Read the ids of these messages, call [`crate::Conversation::learn`], then decide again. The
    /// range may be learned in pieces, beginning at its end.
    Learn(Range<u64>),
}

/// The sequence numbers of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of each message, in order. Most batches have one message.
    pub places: SmallVec<[MessageSeq; 1]>,
    /// The newest message once the batch is appended.
    pub head: u64,
}

impl Plan {
    /// Returns the number of messages that were already appended.
    pub fn deduplicated(&self) -> usize {
        let is_known = |place: &&MessageSeq| matches!(place, MessageSeq::Known(_));
        self.places.iter().filter(is_known).count()
    }
}

/// The sequence number of a message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageSeq {
    /// The message is new and will be appended with this number.
    New(u64),
    /// An equal message already has this number, or will get it as an earlier message of the batch.
    Known(u64),
}

impl MessageSeq {
    /// Returns the number.
    pub fn seq(self) -> u64 {
        match self {
            Self::New(seq) | Self::Known(seq) => seq,
        }
    }
}

/// The result of looking up an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The message has this number.
    At(u64),
    /// No retained message has the id.
    Nowhere,
    /// Messages must be read first, as for [`Decision::Read`].
    Read(Vec<u64>),
    /// Ids must be read first, as for [`Decision::Learn`].
    Learn(Range<u64>),
}

/// The reason why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The newest message is not the expected one.
    #[error("the newest message is {head}, not {expected}")]
    SeqMismatch {
        /// The newest message.
        head: u64,
        /// The expected newest message.
        expected: u64,
    },
    /// The version of the state is not the expected one.
    #[error("the version is {version}, not {expected}")]
    VersionMismatch {
        /// The current version.
        version: u64,
        /// The expected version.
        expected: u64,
    },
    /// The id belongs to another message with different content.
    #[error("message {index} has the id of message {seq} but different content")]
    IdReused {
        /// The index of the message in the batch, from 0.
        index: usize,
        /// The message that has the id.
        seq: u64,
    },
    /// The id belongs to a message that was retracted.
    #[error("message {index} has the id of message {seq}, which was retracted")]
    IdRetracted {
        /// The index of the message in the batch, from 0.
        index: usize,
        /// The retracted message.
        seq: u64,
    },
    /// Two messages of the batch have the same id and different content.
    #[error("message {index} has the id of message {earlier} of the batch but different content")]
    IdRepeated {
        /// The index of the message in the batch, from 0.
        index: usize,
        /// The index of the earlier message, from 0.
        earlier: usize,
    },
    /// The id belongs to an open draft.
    #[error("message {index} has the id of an open draft")]
    IdStreamed {
        /// The index of the message in the batch, from 0.
        index: usize,
    },
    /// The conversation has too many open drafts.
    #[error("too many open drafts in the conversation (limit {max}, conversation.drafts_max)")]
    Drafts {
        /// The limit.
        max: usize,
    },
    /// The conversation is archived and accepts no messages.
    #[error("the conversation is archived")]
    Archived,
    /// The conversation is being copied and not yet complete.
    #[error("the conversation is being copied")]
    Copying,
    /// The conversation was erased; its name cannot be used again.
    #[error("the conversation was erased")]
    Gone,
    /// No conversation has this name.
    #[error("the conversation does not exist")]
    Missing,
    /// A conversation with this name exists.
    #[error("a conversation with this name exists already")]
    Exists,
    /// The message number is beyond the newest message.
    #[error("no such message: the newest message is {head}")]
    BeyondHead {
        /// The newest message.
        head: u64,
    },
    /// The conversation has too many cursors.
    #[error("too many participants with cursors (limit {max}, conversation.cursors_max)")]
    Cursors {
        /// The limit.
        max: usize,
    },
    /// The conversation has too many separate ranges of retracted messages.
    #[error("too many separate ranges of retracted messages (limit {max}, fixed)")]
    Retractions {
        /// The limit.
        max: usize,
    },
    /// A field of the change is too large.
    #[error("{what} of {size} bytes exceeds the limit of {max}")]
    Size {
        /// The field.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The name of a participant or an agent is invalid.
    #[error("invalid name: use 1 to {WHO_LENGTH_MAX} bytes without control characters")]
    Who,
    /// The id of the request is invalid.
    #[error("invalid id: use 1 to {ID_LENGTH_MAX} characters of A-Z a-z 0-9 . _ : -")]
    Id,
    /// The policy for windows is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyProblem),
    /// The conversation has reached the maximum number of messages.
    #[error("the conversation has the maximum of {MESSAGES_MAX} messages")]
    Full,
    /// A stored record cannot be decoded.
    #[error("message {seq} is damaged")]
    Damaged {
        /// The message.
        seq: u64,
    },
}

//! Size limits of batches and messages.

use crate::message::NewMessage;

/// The configurable limits of a conversation. Fixed limits are: ids of 128 characters, roles of 32
/// characters, authors of 256 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of messages in a batch.
    pub batch_messages_max: usize,
    /// Maximum size of a batch (parts and metadata), in bytes.
    pub batch_bytes_max: usize,
    /// Maximum size of a message (parts and metadata), in bytes.
    pub message_bytes_max: usize,
    /// Maximum size of the metadata of a message or a conversation, in bytes.
    pub metadata_bytes_max: usize,
    /// Maximum number of parts of a message.
    pub parts_max: usize,
    /// Maximum number of participants with a cursor.
    pub cursors_max: usize,
    /// Maximum number of open drafts.
    pub drafts_max: usize,
    /// Maximum size of a draft, in bytes.
    pub draft_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_messages_max: 256,
            batch_bytes_max: 8 << 20,
            message_bytes_max: 1 << 20,
            metadata_bytes_max: 16 << 10,
            parts_max: 1024,
            cursors_max: 1024,
            drafts_max: 8,
            draft_bytes_max: 4 << 20,
        }
    }
}

/// Maximum length of a message id.
pub const ID_LENGTH_MAX: usize = 128;
/// Maximum length of a role.
pub const ROLE_LENGTH_MAX: usize = 32;
/// Maximum length of the name of an author, participant or agent, in bytes.
pub const WHO_LENGTH_MAX: usize = 256;

/// The first invalid message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {index}: {problem}")]
pub struct Invalid {
    /// The index of the message, from 0.
    pub index: usize,
    /// The mistake.
    pub problem: Problem,
}

/// A mistake in a batch; see [`Invalid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The batch is empty.
    #[error("the batch is empty")]
    Empty,
    /// The batch has too many messages; `index` is the first one above the limit.
    #[error("too many messages in the batch (limit {max}, conversation.batch_messages_max)")]
    Messages {
        /// The limit.
        max: usize,
    },
    /// The batch is too large; `index` is the first message above the limit.
    #[error("the batch is larger than {max} bytes (conversation.batch_size_max)")]
    BatchSize {
        /// The limit.
        max: usize,
    },
    /// The message is too large.
    #[error("{size} bytes exceed the limit of {max} (conversation.message_size_max)")]
    Size {
        /// The size in bytes.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// The metadata is too large.
    #[error("metadata of {size} bytes exceeds the limit of {max} (conversation.metadata_size_max)")]
    Metadata {
        /// The size in bytes.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The message has too many parts.
    #[error("{count} parts exceed the limit of {max} (conversation.parts_max)")]
    Parts {
        /// The number of parts.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// The id is invalid.
    #[error("invalid id: use 1 to {ID_LENGTH_MAX} characters of A-Z a-z 0-9 . _ : -")]
    Id,
    /// The role is invalid.
    #[error("invalid role: use 1 to {ROLE_LENGTH_MAX} characters of a-z 0-9 _ -")]
    Role,
    /// The author is invalid.
    #[error("invalid author: use at most {WHO_LENGTH_MAX} bytes without control characters")]
    From,
}

/// Maximum size of a record apart from parts, metadata and facts, in bytes.
const AROUND: usize = 1024;
/// Size of the fact about a part, in bytes.
const FACT_SIZE: usize = 13;

impl Limits {
    /// Returns the limits reduced to a maximum record size, so that every accepted message and
    /// draft fits into a record.
    pub fn fitting(self, record_size_max: usize) -> Self {
        let room = record_size_max.saturating_sub(AROUND);
        // A part that contains its kind has at least 20 bytes.
        let facts = (FACT_SIZE * self.parts_max).min(room / 5 * 2);
        let message_bytes_max = self.message_bytes_max.min(room - facts);
        Self {
            message_bytes_max,
            metadata_bytes_max: self.metadata_bytes_max.min(message_bytes_max / 4),
            draft_bytes_max: self.draft_bytes_max.min(room),
            ..self
        }
    }

    /// Validates a batch against the limits, independently of the conversation.
    pub fn check(&self, batch: &[NewMessage<'_>]) -> Result<(), Invalid> {
        let invalid = |index, problem| Err(Invalid { index, problem });
        if batch.is_empty() {
            return invalid(0, Problem::Empty);
        }
        let max = self.batch_messages_max;
        if batch.len() > max {
            return invalid(max, Problem::Messages { max });
        }
        let mut batch_size = 0;
        for (index, message) in batch.iter().enumerate() {
            let size = message.parts.len() + message.metadata.len();
            if let Some(problem) = self.problem(message, size) {
                return invalid(index, problem);
            }
            batch_size += size;
            let max = self.batch_bytes_max;
            if batch_size > max {
                return invalid(index, Problem::BatchSize { max });
            }
        }
        Ok(())
    }

    fn problem(&self, message: &NewMessage<'_>, size: usize) -> Option<Problem> {
        let (metadata, parts) = (message.metadata.len(), message.facts.len());
        if !message.id.is_none_or(is_id) {
            Some(Problem::Id)
        } else if !is_role(message.role) {
            Some(Problem::Role)
        } else if !message.from.is_empty() && !is_who(message.from) {
            Some(Problem::From)
        } else if metadata > self.metadata_bytes_max {
            Some(Problem::Metadata {
                size: metadata,
                max: self.metadata_bytes_max,
            })
        } else if parts > self.parts_max.min(usize::from(u16::MAX)) {
            Some(Problem::Parts {
                count: parts,
                max: self.parts_max.min(usize::from(u16::MAX)),
            })
        } else if size > self.message_bytes_max {
            Some(Problem::Size {
                size,
                max: self.message_bytes_max,
            })
        } else {
            None
        }
    }
}

/// Returns whether the text is a valid message id.
pub(crate) fn is_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=ID_LENGTH_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Returns whether the text is a valid role.
pub(crate) fn is_role(text: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=ROLE_LENGTH_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Returns whether the text is a valid name of an author, participant or agent.
pub(crate) fn is_who(text: &str) -> bool {
    (1..=WHO_LENGTH_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;

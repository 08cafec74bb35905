//! What may be in a batch.

use crate::message::NewMessage;

/// What a conversation takes at most, besides what is fixed: ids of 128 characters, roles of 32,
/// authors of 256 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Messages of a batch.
    pub batch_messages_max: usize,
    /// Bytes of a batch: parts and metadata.
    pub batch_bytes_max: usize,
    /// Bytes of a message: parts and metadata.
    pub message_bytes_max: usize,
    /// Bytes of the metadata of a message or a conversation.
    pub metadata_bytes_max: usize,
    /// Parts of a message.
    pub parts_max: usize,
    /// Participants with a cursor.
    pub cursors_max: usize,
    /// Open drafts.
    pub drafts_max: usize,
    /// Bytes of a draft.
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

/// Longest id of a message.
pub const ID_LENGTH_MAX: usize = 128;
/// Longest role.
pub const ROLE_LENGTH_MAX: usize = 32;
/// Longest author, participant or agent.
pub const WHO_LENGTH_MAX: usize = 256;

/// What is wrong with a message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {index}: {problem}")]
pub struct Invalid {
    /// Which one, from 0; the first that is wrong.
    pub index: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// See [`Invalid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is none.
    #[error("a batch has at least one message")]
    Empty,
    /// There are too many; `index` is the first that is too many.
    #[error("a batch has at most {max} messages")]
    Messages {
        /// The limit.
        max: usize,
    },
    /// Together they are too large; `index` is the first that is too much.
    #[error("a batch has at most {max} bytes")]
    BatchSize {
        /// The limit.
        max: usize,
    },
    /// It is too large.
    #[error("a message has at most {max} bytes, this one has {size}")]
    Size {
        /// Its size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// Its metadata are too large.
    #[error("metadata have at most {max} bytes, these have {size}")]
    Metadata {
        /// Their size.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// It has too many parts.
    #[error("a message has at most {max} parts, this one has {count}")]
    Parts {
        /// As many.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// Its id is not one.
    #[error("an id has 1 to {ID_LENGTH_MAX} characters of A-Z a-z 0-9 . _ : -")]
    Id,
    /// Its role is not one.
    #[error("a role has 1 to {ROLE_LENGTH_MAX} characters of a-z 0-9 _ -")]
    Role,
    /// Its author is not one.
    #[error("an author has at most {WHO_LENGTH_MAX} bytes and no control characters")]
    From,
}

/// Bytes of a record besides parts, metadata and facts, at most.
const AROUND: usize = 1024;
/// Bytes of the fact about a part.
const FACT_SIZE: usize = 13;

impl Limits {
    /// The same limits, where records have at most so many bytes: whatever message or draft they
    /// let in can be written.
    pub fn fitting(self, record_size_max: usize) -> Self {
        let room = record_size_max.saturating_sub(AROUND);
        // A part that says what it is has 20 bytes and more.
        let facts = (FACT_SIZE * self.parts_max).min(room / 5 * 2);
        let message_bytes_max = self.message_bytes_max.min(room - facts);
        Self {
            message_bytes_max,
            metadata_bytes_max: self.metadata_bytes_max.min(message_bytes_max / 4),
            draft_bytes_max: self.draft_bytes_max.min(room),
            ..self
        }
    }

    /// Whether a batch may be appended at all, as far as it alone can tell.
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

/// Whether that can be an id.
pub(crate) fn is_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=ID_LENGTH_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Whether that can be a role.
pub(crate) fn is_role(text: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=ROLE_LENGTH_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Whether that can be an author, a participant or an agent.
pub(crate) fn is_who(text: &str) -> bool {
    (1..=WHO_LENGTH_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;

//! Errors of chunks.

use crate::facts::PARTS_MAX;

/// The reason why a chunk is refused. The message stays as it was.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The chunk is not a JSON object of its kind.
    #[error("{0}")]
    Malformed(String),
    /// The kind is unknown and resembles a known one.
    #[error("unknown chunk type `{kind}`; is `{nearest}` meant?")]
    Kind {
        /// The kind that the chunk names.
        kind: String,
        /// The kind that may be meant.
        nearest: &'static str,
    },
    /// Objects and arrays are nested too deeply.
    #[error("objects and arrays are nested more than {max} deep", max = json::DEPTH_MAX - 1)]
    TooDeep,
    /// The text was not started, or has ended.
    #[error("`{id}` was not started: send `{prose}-start` first")]
    NoText {
        /// `text` or `reasoning`.
        prose: &'static str,
        /// Its id.
        id: String,
    },
    /// The tool call was not started.
    #[error("unknown tool call `{id}`: send `tool-input-start` or `tool-input-available` first")]
    NoCall {
        /// Its id.
        id: String,
    },
    /// The streamed input was not started.
    #[error("tool call `{id}` has no streamed input: send `tool-input-start` first")]
    NoInput {
        /// The id of the call.
        id: String,
    },
    /// The approval was not requested.
    #[error("unknown approval request `{id}`: send `tool-approval-request` first")]
    NoApproval {
        /// Its id.
        id: String,
    },
    /// A field that this kind of chunk requires.
    #[error("`{field}` is missing or of the wrong type")]
    Field {
        /// The name of the field.
        field: &'static str,
    },
    /// The message would exceed its size limit.
    #[error("the message exceeds {size_max} bytes")]
    TooLarge {
        /// The limit, in bytes.
        size_max: usize,
    },
    /// The message would have too many parts.
    #[error("the message has too many parts (limit {PARTS_MAX})")]
    TooManyParts,
}

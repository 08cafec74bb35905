//! Errors of an inspection.

use std::io;

use journal::extent::ExtentError;
use journal::segment::SegmentError;

/// A directory that cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The directory is not a journal's.
    #[error("this is no journal: it has neither a manifest nor a write-ahead log")]
    NoJournal,
    /// A newer build wrote the journal.
    #[error("{0}")]
    Newer(String),
    /// An I/O error.
    #[error("cannot read the journal: {0}")]
    Io(#[from] io::Error),
}

impl From<SegmentError> for InspectError {
    fn from(error: SegmentError) -> Self {
        match error {
            SegmentError::Io { error, .. } => Self::Io(error),
            other => Self::Newer(other.to_string()),
        }
    }
}

impl From<ExtentError> for InspectError {
    fn from(error: ExtentError) -> Self {
        match error {
            ExtentError::Io { source, .. } => Self::Io(source),
            other => Self::Newer(other.to_string()),
        }
    }
}

//! `Failure`: errors of writing to or reading from the archive.

use tokio_postgres::error::SqlState;

use super::address::with_causes;

/// Error of an archive operation. All errors are retried.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Error of the database or of the connection.
    #[error("{}", with_causes(.0))]
    Database(#[from] tokio_postgres::Error),
    /// PostgreSQL did not answer in time.
    #[error("PostgreSQL did not answer within {seconds} s")]
    Timeout {
        /// Time limit in seconds.
        seconds: u64,
    },
    /// A newer version made the tables.
    #[error(
        "the archive has schema version {version}, this node supports up to {known}: use the newer telpher"
    )]
    NewerSchema {
        /// Version of the tables.
        version: usize,
        /// Newest version that this node supports.
        known: usize,
    },
    /// Another process writes to the archive for the same journal. The mark is read again.
    #[error(
        "the mark of {partition} was moved by another process: check that no other node runs on a copy of this journal"
    )]
    MarkMoved {
        /// Name of the partition.
        partition: String,
    },
    /// The archive has events that are not in this journal.
    #[error(
        "the archive has events of {partition} up to {next} that are not in this journal: it may have been restored from an older copy"
    )]
    OtherHistory {
        /// Name of the partition.
        partition: String,
        /// Mark in the archive.
        next: u64,
    },
    /// Error of the node, for example of its disk.
    #[error("{0}")]
    Node(String),
}

impl Failure {
    /// True if only one partition is affected and the connection can still be used.
    pub(super) fn affects_one_partition(&self) -> bool {
        matches!(self, Self::OtherHistory { .. } | Self::Node(_))
    }
}

impl From<conversation_service::ConversationError> for Failure {
    fn from(refusal: conversation_service::ConversationError) -> Self {
        Self::Node(refusal.to_string())
    }
}

/// True if the error concerns one row and would recur for that row only (PostgreSQL documentation,
/// appendix *Error Codes*: classes for data, constraints, checks, program limits, and exceptions
/// raised by triggers).
pub(super) fn is_row_error(error: &tokio_postgres::Error) -> bool {
    const CLASSES: [&str; 5] = ["22", "23", "44", "54", "P0"];
    let code = error.code().map(SqlState::code).unwrap_or_default();
    CLASSES.iter().any(|class| code.starts_with(class))
}

//! Why the archive was not written or read this time.

use tokio_postgres::error::SqlState;

use super::address::told;

/// What went wrong; tried again after a while, whatever it is.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The database, or the way to it.
    #[error("{}", told(.0))]
    Database(#[from] tokio_postgres::Error),
    /// It does not answer.
    #[error("PostgreSQL has not answered for {seconds} s")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
    },
    /// The tables are made by a newer version.
    #[error(
        "the archive's tables are of version {version}, this node knows {known}: use the newer telpher"
    )]
    Newer {
        /// Theirs.
        version: usize,
        /// Ours.
        known: usize,
    },
    /// Somebody else writes for this journal, or wrote; where it stands is asked for again.
    #[error(
        "the mark of {partition} was moved by somebody else: does another node have a copy of this journal?"
    )]
    Moved {
        /// Which partition.
        partition: String,
    },
    /// The archive is of another history.
    #[error(
        "the archive has events of {partition} up to {next} that this journal does not have: was an older copy of it restored?"
    )]
    OtherHistory {
        /// Which partition.
        partition: String,
        /// The archive's mark.
        next: u64,
    },
    /// The node's own disk, or what is on it.
    #[error("{0}")]
    Node(String),
}

impl Failure {
    /// Whether one partition has it, and the others may go on over the same connection.
    pub(super) fn is_of_one_partition(&self) -> bool {
        matches!(self, Self::OtherHistory { .. } | Self::Node(_))
    }
}

impl From<node::conversations::Refusal> for Failure {
    fn from(refusal: node::conversations::Refusal) -> Self {
        Self::Node(refusal.message)
    }
}

/// Whether an error is about the row and not about the server: it would come again, for this row
/// alone (PostgreSQL documentation, appendix *Error Codes*: classes of data, constraints, checks,
/// limits of the program, and what a trigger raises).
pub(super) fn is_of_the_row(error: &tokio_postgres::Error) -> bool {
    const CLASSES: [&str; 5] = ["22", "23", "44", "54", "P0"];
    let code = error.code().map(SqlState::code).unwrap_or_default();
    CLASSES.iter().any(|class| code.starts_with(class))
}

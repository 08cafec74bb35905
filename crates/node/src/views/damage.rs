//! What is wrong with the file of the views.

/// Why the views could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    /// The database says so.
    #[error(transparent)]
    Database(Box<redb::Error>),
    /// What a table holds makes no sense.
    #[error("the table `{table}` of the views is damaged")]
    Malformed {
        /// Which.
        table: String,
    },
}

impl Damage {
    /// Whether the file is of no use: all others may pass.
    pub(super) fn is_lasting(&self) -> bool {
        match self {
            Self::Malformed { .. } => true,
            Self::Database(error) => !matches!(
                **error,
                redb::Error::Io(_) | redb::Error::PreviousIo | redb::Error::DatabaseAlreadyOpen
            ),
        }
    }
}

macro_rules! from_database {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for Damage {
            fn from(error: redb::$error) -> Self {
                Self::Database(Box::new(error.into()))
            }
        }
    )*};
}

from_database!(
    CommitError,
    DatabaseError,
    SetDurabilityError,
    StorageError,
    TableError,
    TransactionError
);

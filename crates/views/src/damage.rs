//! Errors of the views' file.

/// The reason why the views could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Damage {
    /// The database reported an error.
    #[error(transparent)]
    Database(Box<redb::Error>),
    /// A table has invalid content.
    #[error("the table `{table}` of the views is damaged")]
    Malformed {
        /// The table.
        table: String,
    },
}

impl Damage {
    /// Returns whether the file must be discarded. Other errors can be temporary.
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

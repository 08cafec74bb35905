//! Errors of the views' file.

use std::io;

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
        let Self::Database(error) = self else {
            return true;
        };
        match &**error {
            // The content is at fault, not the disk: a crash while the file was created leaves one
            // without a magic number.
            redb::Error::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ),
            redb::Error::PreviousIo | redb::Error::DatabaseAlreadyOpen => false,
            _ => true,
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

//! Bearer tokens: who may connect, stored as salted hashes in the data directory.
//!
//! Once the file exists, authentication is on, also when no token is left in it. A file that
//! cannot be understood, or that disappears from under a running node, is an error and never "no
//! tokens": what is in doubt stays shut.
//!
//! The store does not know doors or clocks: the time and the random bytes are passed in.

mod file;
mod secret;
mod store;

use std::fmt;

pub use file::{FILE_NAME, TokensError};
pub use secret::{ENTROPY_SIZE, Secret};
pub use store::{AddError, RevokeError, TokenStore};

/// What a token's bearer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything, administration too.
    Admin,
    /// Subscribe, send, call.
    Agent,
}

impl Role {
    /// The word that people and programs read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A token as the store knows it: enough to recognise the secret, not to tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What the owner calls it, unique in the store.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// Seconds since 1970-01-01 UTC.
    pub created_s: u64,
    fingerprint: secret::Fingerprint,
}

#[cfg(test)]
mod tests;

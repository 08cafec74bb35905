//! Once the file exists, authentication is on, even when the file lists no token. A damaged file,
//! or one that disappears while the node runs, is an error and never means "no tokens": access
//! stays refused. A failed read is a separate error, [`TokensError::Disk`], and says nothing about
//! the tokens.
//!
//! The store does not know listeners or clocks: the time and the random bytes are passed in.

mod file;
mod index;
mod secret;
mod store;

use std::fmt;
use std::sync::Arc;

pub use file::{FILE_NAME, TokensError};
pub use index::Index;
pub use secret::{ENTROPY_SIZE, Secret, entropy_of};
pub use store::{AddError, ChangeError, TokenStore};

use crate::Pattern;

/// The permissions of a token's bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Full access, including administration.
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

/// A stored token: it can verify the secret but does not contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token's name, unique in the store.
    pub name: String,
    /// Permissions of the bearer.
    pub role: Role,
    /// Seconds since 1970-01-01 UTC.
    pub created_s: u64,
    /// The names that the bearer may use; an empty list stands for `default/default/NAME` alone.
    /// `None` for a token that an earlier version made: its bearer may use any name.
    pub names: Option<Arc<[Pattern]>>,
    fingerprint: secret::Fingerprint,
}

impl Token {
    /// Makes a token and its secret. `entropy` must come from a source fit for secrets.
    pub fn generate(
        name: &str,
        role: Role,
        names: Option<Arc<[Pattern]>>,
        created_s: u64,
        entropy: &[u8; ENTROPY_SIZE],
    ) -> (Secret, Self) {
        let (secret, fingerprint) = secret::generate(entropy);
        let token = Self {
            name: name.to_owned(),
            role,
            created_s,
            names,
            fingerprint,
        };
        (secret, token)
    }

    /// Returns whether this is the token's secret text.
    pub fn has_secret(&self, text: &str) -> bool {
        self.fingerprint.matches(text)
    }

    /// Returns whether the bearer may use every name: by `*/*/*`, or because an earlier version
    /// made the token.
    pub fn is_free(&self) -> bool {
        let is_any = |names: &Arc<[Pattern]>| names.iter().any(Pattern::is_any);
        self.names.as_ref().is_none_or(is_any)
    }
}

#[cfg(test)]
mod tests;

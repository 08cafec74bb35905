//! The tokens in memory, in step with their file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Disk, Lock, LockError};

use super::file::{self, FILE_NAME, TokensError};
use super::secret::{ENTROPY_SIZE, Secret};
use super::{Role, Token};
use crate::Pattern;

/// Longest name of a token, in bytes.
const NAME_LENGTH_MAX: usize = 64;

/// The tokens of one data directory.
///
/// A running node calls [`TokenStore::reload`] a few times a second, on a thread of its own, and
/// looks tokens up in an [`Index`](super::Index) of the tokens that were read.
pub struct TokenStore {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// The file as it was read; `None` when there is none.
    bytes: Option<Vec<u8>>,
    tokens: Vec<Token>,
}

/// A token was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// Not a name.
    #[error(
        "`{name}` is not a token's name: 1 to {NAME_LENGTH_MAX} letters, digits, `.`, `_` or `-`"
    )]
    Name {
        /// The invalid name.
        name: String,
    },
    /// A token of that name exists.
    #[error("there is a token `{name}` already")]
    Exists {
        /// The name.
        name: String,
    },
    /// Another process changes the tokens at this moment.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The tokens file cannot be read or written.
    #[error(transparent)]
    Tokens(#[from] TokensError),
}

/// A token was not revoked or changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// No token has that name.
    #[error("there is no token `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// The most similar existing name.
        nearest: Option<String>,
    },
    /// Another process changes the tokens at this moment.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The tokens file cannot be read or written.
    #[error(transparent)]
    Tokens(#[from] TokensError),
}

impl TokenStore {
    /// Reads the tokens of a data directory.
    pub fn open(disk: Arc<dyn Disk>, data_dir: &Path) -> Result<Self, TokensError> {
        let path = data_dir.join(FILE_NAME);
        let mut store = Self {
            disk,
            path,
            bytes: None,
            tokens: Vec::new(),
        };
        store.reload()?;
        Ok(store)
    }

    /// Returns whether clients must present a token.
    pub fn required(&self) -> bool {
        self.bytes.is_some()
    }

    /// The tokens, in the order in which they were added.
    pub fn list(&self) -> &[Token] {
        &self.tokens
    }

    /// Reads the file again and returns whether it changed. After an error the previous tokens stay
    /// in force: a revocation in an unreadable file does not take effect yet, and no additional
    /// client is let in.
    pub fn reload(&mut self) -> Result<bool, TokensError> {
        let bytes = self.disk.read(&self.path)?;
        if bytes == self.bytes {
            return Ok(false);
        }
        let tokens = match &bytes {
            Some(bytes) => file::decode(&self.path, bytes)?,
            None => {
                return Err(TokensError::Disappeared {
                    path: self.path.clone(),
                });
            }
        };
        self.bytes = bytes;
        self.tokens = tokens;
        Ok(true)
    }

    /// Adds a token for the names that match these patterns, or for `default/default/NAME` if there
    /// are none. Does not store the secret. `now_s` counts from 1970-01-01 UTC; `entropy` must come
    /// from a source fit for secrets.
    pub fn add(
        &mut self,
        name: &str,
        role: Role,
        names: &[Pattern],
        now_s: u64,
        entropy: &[u8; ENTROPY_SIZE],
    ) -> Result<Secret, AddError> {
        if !is_name(name) {
            return Err(AddError::Name {
                name: name.to_owned(),
            });
        }
        let _lock = self.lock()?;
        self.reload()?;
        if self.tokens.iter().any(|token| token.name == name) {
            return Err(AddError::Exists {
                name: name.to_owned(),
            });
        }
        let (secret, token) = Token::generate(name, role, Some(names.into()), now_s, entropy);
        let mut tokens = self.tokens.clone();
        tokens.push(token);
        self.store(tokens)?;
        Ok(secret)
    }

    /// Replaces the patterns of the names that a token's bearer may use. The secret stays.
    pub fn bind(&mut self, name: &str, names: &[Pattern]) -> Result<(), ChangeError> {
        let _lock = self.lock()?;
        self.reload()?;
        let index = self.find(name)?;
        let mut tokens = self.tokens.clone();
        tokens[index].names = Some(names.into());
        Ok(self.store(tokens)?)
    }

    /// Revokes a token.
    pub fn revoke(&mut self, name: &str) -> Result<Token, ChangeError> {
        let _lock = self.lock()?;
        self.reload()?;
        let index = self.find(name)?;
        let mut tokens = self.tokens.clone();
        let revoked = tokens.remove(index);
        self.store(tokens)?;
        Ok(revoked)
    }

    fn find(&self, name: &str) -> Result<usize, ChangeError> {
        let index = self.tokens.iter().position(|token| token.name == name);
        index.ok_or_else(|| {
            let names = self.tokens.iter().map(|token| token.name.as_str());
            ChangeError::Unknown {
                name: name.to_owned(),
                nearest: model::nearest(name, names).map(str::to_owned),
            }
        })
    }

    fn store(&mut self, tokens: Vec<Token>) -> Result<(), TokensError> {
        let bytes = file::encode(&tokens).into_bytes();
        self.disk.write(&self.path, &bytes)?;
        self.bytes = Some(bytes);
        self.tokens = tokens;
        Ok(())
    }

    /// Locks the tokens against other `telpher` commands. This is not the data directory's lock,
    /// which a running node holds.
    fn lock(&self) -> Result<Box<dyn Lock>, LockError> {
        if let Some(dir) = self.path.parent() {
            self.disk.create_dir(dir)?;
        }
        self.disk.lock(&self.path.with_extension("lock"))
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

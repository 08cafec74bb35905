//! The file of the tokens: `tokens.toml` in the data directory.

use std::path::{Path, PathBuf};

use super::secret::Fingerprint;
use super::{Role, Token};
use crate::ports::DiskError;

/// The file's name in the data directory.
pub const FILE_NAME: &str = "tokens.toml";

const VERSION: u32 = 1;

const HEAD: &str = "\
# The tokens of this node; the secrets themselves are not here. Change it with `telpher token`.
";

/// Why the tokens cannot be read or written; nobody is let in meanwhile.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file is not one of ours, or damaged.
    #[error("the tokens in {} cannot be understood: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file was there and is not any more.
    #[error("the tokens in {} have disappeared", path.display())]
    Disappeared {
        /// The file.
        path: PathBuf,
    },
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    #[serde(default, rename = "token")]
    tokens: Vec<Row>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    role: Role,
    created: u64,
    salt: String,
    hash: String,
}

pub(super) fn encode(tokens: &[Token]) -> String {
    let rows = tokens.iter().map(|token| {
        let (salt, hash) = token.fingerprint.to_hex();
        Row {
            name: token.name.clone(),
            role: token.role,
            created: token.created_s,
            salt,
            hash,
        }
    });
    let document = Document {
        version: VERSION,
        tokens: rows.collect(),
    };
    // Strings and numbers in a table of tables: there is nothing that TOML could not write.
    let body = toml::to_string(&document).unwrap_or_else(|error| unreachable!("{error}"));
    format!("{HEAD}{body}")
}

pub(super) fn decode(path: &Path, bytes: &[u8]) -> Result<Vec<Token>, TokensError> {
    let damaged = |reason: String| TokensError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let text = std::str::from_utf8(bytes).map_err(|error| damaged(error.to_string()))?;
    let document: Document =
        toml::from_str(text).map_err(|error| damaged(error.message().to_owned()))?;
    if document.version != VERSION {
        return Err(damaged(format!(
            "its version is {}, not {VERSION}",
            document.version
        )));
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(document.tokens.len());
    for row in document.tokens {
        let fingerprint = Fingerprint::from_hex(&row.salt, &row.hash)
            .ok_or_else(|| damaged(format!("salt or hash of `{}` is not hex", row.name)))?;
        if tokens.iter().any(|token| token.name == row.name) {
            return Err(damaged(format!("`{}` stands in it twice", row.name)));
        }
        tokens.push(Token {
            name: row.name,
            role: row.role,
            created_s: row.created,
            fingerprint,
        });
    }
    Ok(tokens)
}

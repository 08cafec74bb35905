//! The file of the tokens: `tokens.toml` in the data directory.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use platform::DiskError;

use super::secret::Fields;
use super::{Role, Token};
use crate::Pattern;

/// The file's name in the data directory.
pub const FILE_NAME: &str = "tokens.toml";

/// The version that is written. Version 1 had salted hashes and no names; it is read, too.
const VERSION: u32 = 2;

const HEAD: &str = "\
# The tokens of this node; the secrets themselves are not here. Change it with `telpher token`.
";

/// An error in reading or writing the tokens. With a damaged or deleted file no client is let in.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// A disk error. After a failed read, the tokens of the previous read stay valid.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file is not one of ours, or damaged.
    #[error("the tokens in {} cannot be understood: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason, for people.
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
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

pub(super) fn encode(tokens: &[Token]) -> String {
    let rows = tokens.iter().map(|token| {
        let Fields { sha256, salt, hash } = Fields::from(&token.fingerprint);
        let names = token.names.as_ref();
        Row {
            name: token.name.clone(),
            role: token.role,
            created: token.created_s,
            names: names.map(|names| names.iter().map(ToString::to_string).collect()),
            sha256,
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
    if !(1..=VERSION).contains(&document.version) {
        return Err(damaged(format!(
            "its version is {}, not 1 to {VERSION}",
            document.version
        )));
    }
    let mut names = HashSet::with_capacity(document.tokens.len());
    let mut tokens: Vec<Token> = Vec::with_capacity(document.tokens.len());
    for row in document.tokens {
        let Row {
            name,
            role,
            created,
            names: patterns,
            sha256,
            salt,
            hash,
        } = row;
        let fields = Fields { sha256, salt, hash };
        let fingerprint = fields.read().ok_or_else(|| {
            damaged(format!(
                "`{name}` has neither `sha256` nor `salt` and `hash` in hexadecimal"
            ))
        })?;
        if !names.insert(name.clone()) {
            return Err(damaged(format!("`{name}` stands in it twice")));
        }
        let parse = |texts: Vec<String>| {
            let patterns = texts.iter().map(|text| Pattern::parse(text));
            let patterns: Result<Vec<_>, _> = patterns.collect();
            patterns.map_err(|error| damaged(format!("`for` of `{name}`: {error}")))
        };
        tokens.push(Token {
            names: patterns.map(parse).transpose()?.map(Into::into),
            name,
            role,
            created_s: created,
            fingerprint,
        });
    }
    Ok(tokens)
}

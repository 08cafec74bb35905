//! Contexts: named nodes with the credentials for them, in a file of the user.
//!
//! The file has addresses and references to tokens. Invariant: *it never contains a token.*

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use console::{Environment, Exit, Failure};
use serde::{Deserialize, Serialize};

use crate::cli::similar;

/// The variable that names the context of a command.
pub(crate) const VARIABLE: &str = "TELPHER_CONTEXT";

/// Maximum length of a name, in bytes.
const NAME_SIZE_MAX: usize = 64;

/// Path of the file below the user's configuration directory.
const FILE: &str = "telpher/contexts.toml";

/// The first lines of the file.
const HEAD: &str = "\
# Contexts of telpher's commands: `telpher context --help`. It has references to tokens, not tokens.

";

/// A node, and the credentials for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    /// Address of the node.
    pub(crate) url: String,
    /// File whose first line is the bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    /// Shell command whose first line of output is the bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_command: Option<String>,
    /// Certificates (PEM) to trust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls_authorities: Option<PathBuf>,
}

/// The contexts of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The context of commands that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selected: Option<String>,
    /// The contexts by name.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

impl Context {
    /// Returns the bearer token, if the context has one. Reads the file, or runs the command.
    pub(crate) fn token(&self, name: &str) -> Result<Option<String>, Failure> {
        let failed = |message: String| {
            Failure::new(Exit::Usage, message).hint(format!(
                "`telpher context add {name} --replace` sets another token; --token TOKEN does \
                 without"
            ))
        };
        let (text, source) = match (&self.token_file, &self.token_command) {
            (Some(path), _) => {
                let text = fs::read_to_string(path).map_err(|error| {
                    let path = path.display();
                    failed(format!(
                        "cannot read the token file {path} of the context `{name}`: {error}"
                    ))
                })?;
                (text, format!("the token file {}", path.display()))
            }
            (None, Some(command)) => {
                let text = output_of(command).map_err(|error| {
                    failed(format!(
                        "the token command of the context `{name}` failed: {error}: {command}"
                    ))
                })?;
                (text, format!("the output of the token command `{command}`"))
            }
            (None, None) => return Ok(None),
        };
        let token = text.lines().next().unwrap_or_default().trim();
        match token.is_empty() || token.contains(char::is_whitespace) {
            true => {
                let message = format!(
                    "{source} of the context `{name}` does not begin with a line that is a token"
                );
                Err(failed(message))
            }
            false => Ok(Some(token.to_owned())),
        }
    }

    /// Returns where the token comes from.
    pub(crate) fn token_source(&self) -> Option<String> {
        match (&self.token_file, &self.token_command) {
            (Some(path), _) => Some(format!("file {}", path.display())),
            (None, Some(command)) => Some(format!("command {command}")),
            (None, None) => None,
        }
    }
}

/// Runs a shell command and returns its standard output. It may ask for a passphrase at the
/// terminal.
fn output_of(command: &str) -> Result<String, String> {
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", command]).stderr(Stdio::inherit());
    let output = shell
        .stdin(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|_| "its output is not UTF-8".to_owned()),
        false => Err(output.status.to_string()),
    }
}

impl Contexts {
    /// Reads the contexts; none if there is no file.
    pub(crate) fn read(environment: &Environment) -> Result<Self, Failure> {
        match path(environment) {
            Some(path) => Self::read_from(&path),
            None => Ok(Self::default()),
        }
    }

    fn read_from(path: &Path) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("cannot read the contexts in {}: {error}", path.display());
            Failure::new(Exit::Usage, message)
                .hint("correct or remove the file; --url URL selects a node without it")
        };
        match fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).map_err(|error| failed(&error.to_string().trim())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Changes the contexts and writes them. Changes of several commands at the same time follow
    /// each other.
    pub(crate) fn change<T>(
        environment: &Environment,
        change: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = path(environment).ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                "there is no directory for contexts: neither XDG_CONFIG_HOME nor HOME is an \
                 absolute path",
            )
            .hint("set HOME, or select the node with --url URL")
        })?;
        let failed = |error: io::Error| {
            let message = format!("cannot write the contexts to {}: {error}", path.display());
            Failure::new(Exit::Failed, message)
                .hint("XDG_CONFIG_HOME sets the directory of the user's configuration")
        };
        // A link to another directory stays a link.
        let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let dir = target.parent().unwrap_or(Path::new("/"));
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(failed)?;
        let lock = File::open(dir).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut contexts = Self::read_from(&path)?;
        let changed = change(&mut contexts)?;
        contexts.write(&target, dir, &lock).map_err(failed)?;
        Ok(changed)
    }

    /// Replaces the file at once, readable by the user only.
    fn write(&self, target: &Path, dir: &Path, dir_file: &File) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        // The mode of a temporary file is 0600.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(HEAD.as_bytes())?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(target)?;
        dir_file.sync_all()
    }

    /// Returns the context of that name.
    pub(crate) fn find(&self, name: &str) -> Result<&Context, Failure> {
        self.contexts.get(name).ok_or_else(|| self.unknown(name))
    }

    /// Returns the failure of a command that names a context that does not exist.
    pub(crate) fn unknown(&self, name: &str) -> Failure {
        let failure = Failure::new(Exit::NotFound, format!("there is no context `{name}`"));
        let names: Vec<_> = self.contexts.keys().map(String::as_str).collect();
        failure.hint(match similar(name, names.iter().copied()) {
            Some(known) => format!("did you mean `{known}`?"),
            None if names.is_empty() => format!("`telpher context add {name} --url URL` adds it"),
            None => format!("the contexts are {}", names.join(", ")),
        })
    }
}

/// Checks the name of a new context.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_valid = (1..=NAME_SIZE_MAX).contains(&name.len())
        && name.bytes().all(is_part)
        && !name.starts_with('-');
    match is_valid {
        true => Ok(()),
        false => Err(
            Failure::new(Exit::Usage, format!("`{name}` is not a name of a context")).hint(
                format!("a name has 1 to {NAME_SIZE_MAX} letters, digits and . _ -, like `prod`"),
            ),
        ),
    }
}

/// Returns the path of the file, as the XDG Base Directory Specification places it; `None` if the
/// user has no directory.
pub(crate) fn path(environment: &Environment) -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(environment.get(name)?);
        path.is_absolute().then_some(path)
    };
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(config?.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn the_file_is_in_the_configuration_directory_of_the_user() {
        let at = |pairs: &[_]| path(&environment(pairs));
        let home = ("HOME", "/home/ann");
        let expected = Some(PathBuf::from("/home/ann/.config/telpher/contexts.toml"));
        assert_eq!(at(&[home]), expected);
        assert_eq!(at(&[home, ("XDG_CONFIG_HOME", "relative")]), expected);
        let expected = Some(PathBuf::from("/x/telpher/contexts.toml"));
        assert_eq!(at(&[home, ("XDG_CONFIG_HOME", "/x")]), expected);
        assert_eq!(at(&[]), None);
    }

    #[test]
    fn names_of_contexts_are_words() {
        for name in ["prod", "a", "eu-1.staging_2"] {
            check_name(name).unwrap();
        }
        for name in ["", "a b", "-x", "{\"budget\":1}", &"x".repeat(65)] {
            assert_eq!(check_name(name).unwrap_err().exit, Exit::Usage, "{name}");
        }
    }

    #[test]
    fn an_unknown_context_suggests_others() {
        let mut contexts = Contexts::default();
        let hint = |contexts: &Contexts| contexts.unknown("prd").errors[0].hints[0].clone();
        assert_eq!(
            hint(&contexts),
            "`telpher context add prd --url URL` adds it"
        );
        contexts
            .contexts
            .insert("staging".to_owned(), Context::default());
        assert_eq!(hint(&contexts), "the contexts are staging");
        contexts
            .contexts
            .insert("prod".to_owned(), Context::default());
        assert_eq!(hint(&contexts), "did you mean `prod`?");
    }

    #[test]
    fn a_token_is_the_first_line_of_a_command() {
        let with = |command: &str| Context {
            token_command: Some(command.to_owned()),
            ..Context::default()
        };
        let token = with("printf 't-1\\nuser: ann\\n'").token("prod").unwrap();
        assert_eq!(token.as_deref(), Some("t-1"));
        assert_eq!(Context::default().token("prod").unwrap(), None);
        for (command, message) in [
            ("exit 3", "failed: exit status: 3: exit 3"),
            ("true", "does not begin with a line that is a token"),
            (
                "echo two words",
                "does not begin with a line that is a token",
            ),
        ] {
            let failure = with(command).token("prod").unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.to_string().contains(message), "{failure}");
        }
    }
}

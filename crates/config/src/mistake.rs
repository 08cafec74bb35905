//! Mistakes in a configuration, with their origin.

use std::fmt;
use std::path::PathBuf;

/// The origin of a value, in the order of the layers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// A line of the file.
    File {
        /// The path as it was given.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag, with its dashes.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct Mistake {
    /// The origin of the wrong value.
    pub origin: Origin,
    /// The mistake in words, with the option or the text.
    pub message: String,
    /// Suggestions how to correct it, one line each.
    pub hints: Vec<String>,
}

impl Mistake {
    pub(super) fn new(origin: Origin, message: String) -> Self {
        Self {
            origin,
            message,
            hints: Vec::new(),
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// All mistakes of a configuration; at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} in the configuration", count(.0.len()))]
pub struct Mistakes(pub Vec<Mistake>);

fn count(mistakes: usize) -> String {
    if mistakes == 1 {
        "1 mistake".to_owned()
    } else {
        format!("{mistakes} mistakes")
    }
}

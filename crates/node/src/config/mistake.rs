//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from, in the order of the layers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of the file.
    File {
        /// The file as it was named.
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

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct Mistake {
    /// Where.
    pub origin: Origin,
    /// What, naming the option or the text.
    pub message: String,
    /// What to do next; each stands on a line of its own.
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

/// Everything that is wrong; at least one.
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

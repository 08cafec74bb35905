//! Why a program gave up, in words for the person who started it.

use std::fmt;

/// The result of everything that can fail here.
pub type Outcome<T> = Result<T, Failure>;

/// What went wrong, what to try next, and whether the command line was to blame.
#[derive(Debug)]
pub struct Failure {
    what: String,
    hint: String,
    usage: bool,
}

impl Failure {
    /// The run failed.
    pub fn run(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure {
            what: what.into(),
            hint: hint.into(),
            usage: false,
        }
    }

    /// The command line makes no sense.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure {
            what: what.into(),
            hint: hint.into(),
            usage: true,
        }
    }

    /// The exit code: 2 for a wrong command line, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        if self.usage { 2 } else { 1 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.what, self.hint)
    }
}

impl std::error::Error for Failure {}

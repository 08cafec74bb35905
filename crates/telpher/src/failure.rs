//! How a command ends when it does not end well.

use model::ErrorCode;

/// The exit status: a promise to whoever scripts us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It did not work.
    Failed = 1,
    /// The command line, the configuration or an argument is wrong.
    Usage = 2,
    /// What was named does not exist.
    NotFound = 3,
    /// The other side cannot be reached, or has no room now.
    Unavailable = 4,
    /// It took too long.
    Timeout = 5,
    /// It is not allowed.
    Denied = 6,
    /// A limit is used up.
    OverLimit = 7,
}

impl Exit {
    /// What the status stands for, as help and documentation say it.
    pub(crate) const MEANINGS: &str =
        "0 ok, 1 failed, 2 usage, 3 not found, 4 unavailable, 5 timeout, 6 denied, 7 over a limit";
}

impl Exit {
    /// The status as a word, for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Denied => "denied",
            Self::OverLimit => "over_limit",
        }
    }
}

impl From<ErrorCode> for Exit {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::NoResponder
            | ErrorCode::UnknownMethod
            | ErrorCode::NotFound
            | ErrorCode::Gone
            | ErrorCode::Trimmed => Self::NotFound,
            ErrorCode::Busy | ErrorCode::Unavailable => Self::Unavailable,
            ErrorCode::DeadlineExceeded => Self::Timeout,
            ErrorCode::Denied | ErrorCode::Unauthenticated => Self::Denied,
            ErrorCode::Throttled => Self::OverLimit,
            ErrorCode::InvalidArgument => Self::Usage,
            ErrorCode::TooLarge
            | ErrorCode::Cancelled
            | ErrorCode::Unconfirmed
            | ErrorCode::HandlerError
            | ErrorCode::Unsupported
            | ErrorCode::Protocol
            | ErrorCode::Internal
            | ErrorCode::Replaced
            | ErrorCode::Conflict
            | ErrorCode::IdReused
            | ErrorCode::OverBudget => Self::Failed,
        }
    }
}

/// Why a command failed: at least one error, each with what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) errors: Vec<Told>,
}

/// An error as a person reads it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl ToString) -> Self {
        Self {
            exit,
            errors: vec![Told {
                message: message.to_string(),
                hints: Vec::new(),
            }],
        }
    }

    /// Adds what to do next to the last error.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(told) = self.errors.last_mut() {
            told.hints.push(hint.into());
        }
        self
    }
}

impl std::fmt::Display for Failure {
    /// The errors without their hints, for a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let messages = self.errors.iter().map(|it| it.message.as_str());
        f.write_str(&messages.collect::<Vec<_>>().join("; "))
    }
}

impl From<node::config::Mistakes> for Failure {
    fn from(mistakes: node::config::Mistakes) -> Self {
        let tell = |mistake: node::config::Mistake| Told {
            message: mistake.to_string(),
            hints: mistake.hints,
        };
        Self {
            exit: Exit::Usage,
            errors: mistakes.0.into_iter().map(tell).collect(),
        }
    }
}

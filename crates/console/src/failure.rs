//! Failures of commands: their messages, hints and exit status.

use model::ErrorCode;

/// The exit status. Scripts rely on the numbers, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The operation failed.
    Failed = 1,
    /// The command line, the configuration or an argument is wrong.
    Usage = 2,
    /// The named object does not exist.
    NotFound = 3,
    /// The node or agent is unreachable, or has no capacity at the moment.
    Unavailable = 4,
    /// The operation exceeded its deadline.
    Timeout = 5,
    /// The operation is not allowed.
    Denied = 6,
    /// A quota is used up.
    OverLimit = 7,
}

impl Exit {
    /// The meanings of the statuses, for help and documentation.
    pub const MEANINGS: &str =
        "0 ok, 1 failed, 2 usage, 3 not found, 4 unavailable, 5 timeout, 6 denied, 7 over a limit";
}

impl Exit {
    /// The status as a word, for JSON output.
    pub fn name(self) -> &'static str {
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
            ErrorCode::Busy | ErrorCode::Unavailable | ErrorCode::Moved => Self::Unavailable,
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
            | ErrorCode::OverBudget
            | ErrorCode::LeaseExpired => Self::Failed,
        }
    }
}

/// The failure of a command: at least one error, each with its hints.
#[derive(Debug)]
pub struct Failure {
    /// The exit status of the process.
    pub exit: Exit,
    /// The errors; never empty.
    pub errors: Vec<ErrorReport>,
}

/// An error message with its hints.
#[derive(Debug)]
pub struct ErrorReport {
    /// The message, in words for people.
    pub message: String,
    /// Suggestions how to proceed, one line each.
    pub hints: Vec<String>,
}

impl Failure {
    /// Creates a failure with one error and no hint.
    pub fn new(exit: Exit, message: impl ToString) -> Self {
        Self {
            exit,
            errors: vec![ErrorReport {
                message: message.to_string(),
                hints: Vec::new(),
            }],
        }
    }

    /// Adds a hint to the last error.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(report) = self.errors.last_mut() {
            report.hints.push(hint.into());
        }
        self
    }
}

impl std::fmt::Display for Failure {
    /// Writes the errors without their hints, for a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let messages = self.errors.iter().map(|it| it.message.as_str());
        f.write_str(&messages.collect::<Vec<_>>().join("; "))
    }
}

//! Failures of commands: their messages, hints and exit status.

use access::tokens::TokensError;
use model::ErrorCode;

/// The exit status. Scripts rely on the numbers, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
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
    pub(crate) const MEANINGS: &str =
        "0 ok, 1 failed, 2 usage, 3 not found, 4 unavailable, 5 timeout, 6 denied, 7 over a limit";
}

impl Exit {
    /// The status as a word, for JSON output.
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

/// The failure of a command: at least one error, each with its hints.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) errors: Vec<ErrorReport>,
}

/// An error message with its hints.
#[derive(Debug)]
pub(crate) struct ErrorReport {
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl ToString) -> Self {
        Self {
            exit,
            errors: vec![ErrorReport {
                message: message.to_string(),
                hints: Vec::new(),
            }],
        }
    }

    /// Adds a hint to the last error.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
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

impl From<node::config::Mistakes> for Failure {
    fn from(mistakes: node::config::Mistakes) -> Self {
        let report = |mistake: node::config::Mistake| ErrorReport {
            message: mistake.to_string(),
            hints: mistake.hints,
        };
        Self {
            exit: Exit::Usage,
            errors: mistakes.0.into_iter().map(report).collect(),
        }
    }
}

/// Converts a TLS error to a failure.
pub(crate) fn tls_failure(error: net::TlsError) -> Failure {
    Failure::new(Exit::Usage, error)
        .hint("`tls.certificate` and `tls.key` are PEM files: the certificate chain and its key")
}

/// Converts an error of the token store to a failure.
pub(crate) fn store_failure(error: TokensError) -> Failure {
    let failure = Failure::new(Exit::Failed, &error);
    match error {
        TokensError::Disk(_) => failure.hint("check that `--data` is the directory of a node"),
        TokensError::Damaged { .. } | TokensError::Disappeared { .. } => failure
            .hint("restore the file from a backup, or remove it, which invalidates all tokens"),
    }
}

//! Failures of a node's parts: their messages for people, with hints.

use access::tokens::TokensError;
use console::{ErrorReport, Exit, Failure};

/// Converts the mistakes in a configuration to a failure with an error for each.
pub fn config_failure(mistakes: config::Mistakes) -> Failure {
    let report = |mistake: config::Mistake| ErrorReport {
        message: mistake.to_string(),
        hints: mistake.hints,
    };
    Failure {
        exit: Exit::Usage,
        errors: mistakes.0.into_iter().map(report).collect(),
    }
}

/// Converts a TLS error to a failure.
pub fn tls_failure(error: net::TlsError) -> Failure {
    Failure::new(Exit::Usage, error)
        .hint("`tls.certificate` and `tls.key` are PEM files: the certificate chain and its key")
}

/// Converts an error of the token store to a failure.
pub fn store_failure(error: TokensError) -> Failure {
    let failure = Failure::new(Exit::Failed, &error);
    match error {
        TokensError::Disk(_) => failure.hint("check that `--data` is the directory of a node"),
        TokensError::Damaged { .. } | TokensError::Disappeared { .. } => failure
            .hint("restore the file from a backup, or remove it, which invalidates all tokens"),
    }
}

//! Failures of quota commands.

use client::CallError;
use console::output::Format;
use console::{Exit, Failure};
use model::ErrorCode;
use serve::HTTP_AGENT;

use crate::commands::conversation::http::{HttpError, Problem};
use crate::commands::target::{agent_name, report_call_failure};

/// Converts an error of an HTTP route to a failure; with `--json`, also prints it to the standard
/// output.
pub(super) fn report(format: Format, error: HttpError) -> Failure {
    match error {
        HttpError::Refused(problem) => match problem.print(format) {
            Ok(()) => refused(&problem),
            Err(unprinted) => unprinted,
        },
        other => other.report(format, None),
    }
}

fn refused(problem: &Problem) -> Failure {
    let message = format!("{}: {}", problem.code, problem.detail);
    let failure = Failure::new(Exit::from(problem.code), message);
    failure.hint(hint(problem.code))
}

/// Converts an error of a native call to a failure; with `--json`, also prints it to the standard
/// output.
pub(super) fn call_failure(format: Format, error: &CallError) -> Failure {
    match agent_name(HTTP_AGENT) {
        Ok(name) if format.json => report_call_failure(format, &name, error),
        _ => {
            let message = format!("{}: {}", error.code, error.message);
            Failure::new(Exit::from(error.code), message).hint(hint(error.code))
        }
    }
}

fn hint(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NotFound => "`telpher quota policies` lists the limits",
        ErrorCode::Conflict => "the limits have changed meanwhile: read them again",
        ErrorCode::InvalidArgument => "see `telpher quota --help`",
        ErrorCode::Denied => {
            "use an administrator's token (`telpher token add NAME --role admin`); \
             `telpher quota resume` ends a halt"
        }
        code => CallError::new(code, "").hint(),
    }
}

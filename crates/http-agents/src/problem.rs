//! Errors of messaging as problem documents.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_api::Problem;
use messaging::mailboxes::{LeaseError, WriteError};
use messaging::{MemoryWriteError, Refusal, RequestError};
use model::{ErrorCode, Failure};
use platform::NotDurable;
use quota_service::Throttled;

/// Returns the problem of a failed call.
pub(crate) fn of_failure(failure: &Failure<'_>) -> Problem {
    let problem = Problem::of(failure.code, failure.message);
    let problem = match failure.sent {
        true => problem.with("sent", true),
        false => problem,
    };
    let problem = with_retry(problem, failure.retry_after_ms);
    match std::str::from_utf8(failure.details) {
        Ok("") => problem,
        Ok(details) => problem.with("details", details),
        Err(_) => problem.with("details_base64", STANDARD.encode(failure.details)),
    }
}

/// Returns the problem of a connection that the node refuses.
pub(crate) fn of_refusal(refusal: Refusal) -> Problem {
    Problem::of(ErrorCode::Unavailable, refusal.to_string())
}

/// Returns the problem of a call that was not handed on.
pub(crate) fn of_request(error: RequestError) -> Problem {
    match error {
        RequestError::Throttled(throttled) => of_throttled(&throttled),
        error => Problem::of(error.code(), error.to_string()),
    }
}

/// Returns the problem of a limit or a halt.
pub(crate) fn of_throttled(throttled: &Throttled) -> Problem {
    let problem = Problem::of(throttled.code(), throttled.message());
    with_retry(problem, throttled.retry_after_ms())
}

/// Returns the problem of a write to a mailbox.
pub(crate) fn of_write(error: WriteError) -> Problem {
    match &error {
        WriteError::Throttled(throttled) => of_throttled(throttled),
        error => with_retry(
            Problem::of(error.code(), error.to_string()),
            error.retry_after_ms(),
        ),
    }
}

/// Returns the problem of a write to memory.
pub(crate) fn of_memory_write(error: MemoryWriteError) -> Problem {
    match error {
        MemoryWriteError::Throttled(throttled) => of_throttled(&throttled),
        error => Problem::of(error.code(), error.to_string()),
    }
}

/// Returns the problem of a record that is not on disk.
pub(crate) fn of_not_durable(error: NotDurable) -> Problem {
    Problem::of(error.code(), error.to_string())
}

/// Returns the problem of a request about messages that are taken.
pub(crate) fn of_lease(error: LeaseError) -> Problem {
    Problem::of(error.code(), error.to_string())
}

fn with_retry(problem: Problem, retry_after_ms: u32) -> Problem {
    match retry_after_ms {
        0 => problem,
        retry_ms => problem.with("retry_ms", retry_ms),
    }
}

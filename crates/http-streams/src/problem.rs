//! Errors of streams as problem documents.

use axum::http::StatusCode;
use http_api::Problem;
use model::ErrorCode;
use store::{StreamError, StreamsError};

/// Returns the problem of an append or a read.
pub(crate) fn of_stream(error: StreamError) -> Problem {
    let problem = Problem::of(error.code(), error.to_string());
    match error {
        // The expected offset is not the next one.
        StreamError::Conflict { next } => {
            let status = StatusCode::PRECONDITION_FAILED;
            Problem::new(status, ErrorCode::Conflict, problem.detail).with("next", next)
        }
        StreamError::Trimmed { start } => problem.with("start", start),
        StreamError::NoStorage
        | StreamError::NoRecords
        | StreamError::Followers
        | StreamError::Storage(_) => problem,
    }
}

/// Returns the problem of a deletion.
pub(crate) fn of_streams(error: StreamsError) -> Problem {
    Problem::of(error.code(), error.to_string())
}

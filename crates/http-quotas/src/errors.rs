//! Errors of several handlers.

use axum::http::StatusCode;
use http_api::Problem;
use model::ErrorCode;

/// Returns the `unconfirmed` problem: the decision may or may not be on disk.
pub fn unconfirmed() -> Problem {
    let detail = platform::Unconfirmed.to_string();
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Unconfirmed,
        detail,
    )
}

//! Work off the threads that serve connections.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use model::ErrorCode;
use serde::Serialize;

use crate::problem::Problem;

/// Collects a list of any length and serializes it off the threads that serve connections.
pub async fn listed<T: Serialize>(
    list: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let write = |list: T| {
        serde_json::to_vec(&list)
            .map_err(|error| Problem::of(ErrorCode::Internal, error.to_string()))
    };
    let body = off_thread(move || list().and_then(write)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Runs work that may read from disk on a blocking thread.
pub async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            let detail = format!("the task failed: {error}");
            Err(Problem::of(ErrorCode::Internal, detail))
        }
    }
}

//! Work off the threads that serve connections, and the time limit of writes.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Context;
use std::time::Duration;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use door::Wakers;
use model::ErrorCode;
use serde::Serialize;

use crate::problem::Problem;

/// Longest time that an answer waits for a write to be on disk.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// Waits for the outcome of a write, at most 30 seconds; then it is `unconfirmed`.
pub async fn within_write_limit<T>(
    outcome: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    match tokio::time::timeout(WRITE_LIMIT, woken_in_batch(outcome)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let limit = WRITE_LIMIT.as_secs();
            let detail =
                format!("the write was not on disk after {limit} s; it may or may not take effect");
            Err(Problem::of(ErrorCode::Unconfirmed, detail))
        }
    }
}

/// Polls a future that waits for the disk with a waker that wakes the thread's requests together.
async fn woken_in_batch<T>(outcome: impl Future<Output = T>) -> T {
    let (mut outcome, mut wakers) = (pin!(outcome), Wakers::default());
    poll_fn(|cx| {
        let waker = wakers.of(cx.waker());
        outcome.as_mut().poll(&mut Context::from_waker(waker))
    })
    .await
}

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

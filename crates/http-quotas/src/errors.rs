//! Errors of several handlers.

use http_api::Problem;
use platform::NotDurable;

/// Returns the problem of a decision that is not durable.
pub fn not_durable(error: NotDurable) -> Problem {
    Problem::of(error.code(), error.to_string())
}
